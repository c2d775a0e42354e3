import { suggestion } from './nearest-name.ts';
import { Findings, type Problem } from './problems.ts';
import { defaultValue, readValue } from './read.ts';
import { RuleView } from './rules.ts';
import { type AnySection, type SectionType, sectionOptions } from './section.ts';
import type { SourceEntry, SourceMap } from './source.ts';
import { parseYaml } from './yaml-source.ts';

/** A file that was read: its name for messages, and its text. */
export interface ConfigurationSource {
  readonly file: string;
  readonly text: string;
}

export type Sections = Readonly<Record<string, AnySection>>;

/** The values of all sections, by the sections' names. */
export type ConfigurationValues<S extends Sections> = { readonly [Name in keyof S]: SectionType<S[Name]> };

export interface Loaded<S extends Sections> {
  /** Whole only when there are no errors. */
  readonly values: ConfigurationValues<S>;
  readonly errors: readonly Problem[];
  readonly warnings: readonly Problem[];
  readonly notices: readonly Problem[];
}

/**
 * Reads and checks the sources, later ones overriding the top-level options of earlier ones. Finds all
 * mistakes at once; it throws for none of them.
 */
export function loadConfiguration<S extends Sections>(
  sources: readonly ConfigurationSource[],
  sections: S,
): Loaded<S> {
  const findings = new Findings();
  const document = mergeSources(sources, findings);
  const values = readSections(document, sections, findings);
  if (findings.errors.length === 0) applyRules(values, sections, new RuleView(document, findings));
  return { values: values as ConfigurationValues<S>, ...findings };
}

function mergeSources(sources: readonly ConfigurationSource[], findings: Findings): SourceMap {
  const entries = new Map<string, SourceEntry>();
  for (const { file, text } of sources) {
    const tree = parseYaml(file, text, findings);
    for (const [name, entry] of tree?.entries ?? []) entries.set(name, entry);
  }
  return { kind: 'map', entries };
}

function readSections(document: SourceMap, sections: Sections, findings: Findings): Record<string, unknown> {
  const values: Record<string, Record<string, unknown>> = {};
  const known = new Set<string>();
  for (const [sectionName, section] of Object.entries(sections)) {
    const sectionValues: Record<string, unknown> = {};
    for (const [name, schema] of Object.entries(sectionOptions(section))) {
      known.add(name);
      const entry = document.entries.get(name);
      const context = { findings, path: name, at: entry?.at, secret: schema['x-secret'] === true };
      sectionValues[name] = entry ? readValue(schema, entry.node, context) : defaultValue(schema, context);
    }
    values[sectionName] = sectionValues;
  }
  for (const [name, { at }] of document.entries) {
    if (!known.has(name)) findings.warn(name, `is not a known option${suggestion(name, known)}`, at);
  }
  return values;
}

function applyRules(values: Record<string, unknown>, sections: Sections, view: RuleView): void {
  for (const [name, section] of Object.entries(sections)) {
    for (const rule of section.rules) rule(values[name] as never, view);
  }
}
