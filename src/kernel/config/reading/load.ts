import type { Randomness } from '../../randomness.ts';
import { Findings, inReadingOrder, type Position, type Problem } from '../problems.ts';
import { type Rule, RuleView } from '../rules.ts';
import { type AnySection, type SectionType, sectionOptions } from '../section.ts';
import { createMissingFiles, type MissingFile, readValueFiles } from '../sources/secret-files.ts';
import type { DocumentTransform, SourceEntry, SourceMap, SourceNode } from '../sources/source.ts';
import type { ConfigurationSource } from '../sources/source-files.ts';
import { parseYaml } from '../sources/yaml-source.ts';
import { type Feature, reportIgnored } from './ignored-features.ts';
import { suggestion } from './nearest-name.ts';
import { defaultValue, readValue, setValue } from './read.ts';

export type Sections = Readonly<Record<string, AnySection>>;

/** The values of all sections, by section name. */
export type ConfigurationValues<S extends Sections> = { readonly [Name in keyof S]: SectionType<S[Name]> };

/** Settings for loading a whole configuration. */
export interface LoadOptions<S extends Sections> {
  readonly transforms?: readonly DocumentTransform[];
  /** Rules between options of several sections. */
  readonly rules?: readonly Rule<ConfigurationValues<S>>[];
  /** Options of other homeservers that this server does not have, with the message for each option. */
  readonly foreignOptions?: ReadonlyMap<string, string>;
  /**
   * Options whose effect is proven by a test. This release ignores all other options, and `reportIgnored` reports
   * those that are given. Absent: none is reported.
   */
  readonly proven?: ReadonlySet<string>;
  /** The features whose options are not proven. */
  readonly features?: readonly Feature[];
  /** Creates missing key and secret files. Absent: no file is written. */
  readonly createMissing?: { readonly randomness: Randomness };
}

/**
 * The places of the given options by their dotted paths, without the options inside lists. The place is `undefined`
 * for options that no file contains: options from environment variables, and options whose values follow from other
 * options.
 */
export type OptionPlaces = ReadonlyMap<string, Position | undefined>;

export interface Loaded<S extends Sections> {
  /** Complete only when there are no errors; otherwise, accessing a value that could not be read throws. */
  readonly values: ConfigurationValues<S>;
  /** The places of the options in the files that give them. */
  readonly origins: OptionPlaces;
  readonly errors: readonly Problem[];
  readonly warnings: readonly Problem[];
  readonly notices: readonly Problem[];
}

/**
 * Reads and checks the sources; later ones override top-level options of earlier ones. Reports all mistakes
 * at once and throws for none. Reads the files named by options, if all sources could be parsed. When there are no
 * errors and `options.createMissing` is given, creates missing files.
 */
export function loadConfiguration<S extends Sections>(
  sources: readonly ConfigurationSource[],
  sections: S,
  options: LoadOptions<S> = {},
): Loaded<S> {
  const findings = new Findings();
  const trees = sources.map(({ file, text }) => parseYaml(file, text, findings));
  let document = mergeTrees(trees);
  for (const transform of options.transforms ?? []) document = transform(document, findings);
  const readable = !trees.includes(undefined);
  const values = readSections(document, sections, readable ? findings : new Findings());
  if (readable) {
    reportUnknown(document, sections, options.foreignOptions, findings);
    checkValues(values as ConfigurationValues<S>, document, sections, options, findings);
  }
  const files = sources.map(({ file }) => file);
  return {
    values: values as ConfigurationValues<S>,
    origins: originsIn(document),
    errors: inReadingOrder(findings.errors, files),
    warnings: inReadingOrder(findings.warnings, files),
    notices: inReadingOrder(findings.notices, files),
  };
}

/** Returns the places of all options of a document by dotted path, except for options inside lists. */
function originsIn({ entries }: SourceMap): OptionPlaces {
  const origins = new Map<string, Position | undefined>();
  const add = (name: string, node: SourceNode, at: Position | undefined) => {
    origins.set(name, at ?? node.at);
    if (node.kind !== 'map') return;
    for (const [member, inner] of node.entries) add(`${name}.${member}`, inner.node, inner.at);
  };
  for (const [name, { node, at }] of entries) add(name, node, at);
  return origins;
}

/** Checks that need the values: files, and rules between options. */
function checkValues<S extends Sections>(
  values: ConfigurationValues<S>,
  document: SourceMap,
  sections: S,
  { rules = [], proven, features = [], createMissing }: LoadOptions<S>,
  findings: Findings,
): void {
  const view = new RuleView(document, findings);
  const missing: MissingFile[] = [];
  for (const [name, section] of Object.entries(sections)) {
    missing.push(...readValueFiles(sectionOptions(section), values[name] as Record<string, unknown>, view));
  }
  for (const [name, section] of Object.entries(sections)) {
    for (const rule of section.rules) view.tryRule(() => rule(values[name] as never, view));
  }
  for (const rule of rules) view.tryRule(() => rule(values, view));
  // A configuration with errors does not say for certain which features it enables.
  if (proven && findings.errors.length === 0) {
    reportIgnored({ document, sections, values, proven, features }, findings);
  }
  if (createMissing && findings.errors.length === 0)
    createMissingFiles(missing, createMissing.randomness, view);
}

function mergeTrees(trees: readonly (SourceMap | undefined)[]): SourceMap {
  const entries = new Map<string, SourceEntry>();
  for (const tree of trees) for (const [name, entry] of tree?.entries ?? []) entries.set(name, entry);
  return { kind: 'map', entries };
}

function readSections(document: SourceMap, sections: Sections, findings: Findings): Record<string, unknown> {
  const values: Record<string, Record<string, unknown>> = {};
  for (const [sectionName, section] of Object.entries(sections)) {
    const sectionValues: Record<string, unknown> = {};
    for (const [name, schema] of Object.entries(sectionOptions(section))) {
      const entry = document.entries.get(name);
      const context = { findings, path: name, at: entry?.at, secret: schema['x-secret'] === true };
      setValue(
        sectionValues,
        name,
        entry ? readValue(schema, entry.node, context) : defaultValue(schema, context),
      );
    }
    values[sectionName] = sectionValues;
  }
  return values;
}

function reportUnknown(
  document: SourceMap,
  sections: Sections,
  foreignOptions: ReadonlyMap<string, string> | undefined,
  findings: Findings,
): void {
  const known = new Set(Object.values(sections).flatMap((section) => Object.keys(sectionOptions(section))));
  for (const [name, { at }] of document.entries) {
    if (known.has(name)) continue;
    const remark = foreignOptions?.get(name);
    findings.warn(name, remark ?? `is not a known option${suggestion(name, known)}`, at);
  }
}
