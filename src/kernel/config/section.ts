import { type Static, type TObject, type TProperties, type TSchema, type TUnsafe, Type } from 'typebox';
import { type OptionSchema, schemaOf } from './option.ts';
import { Findings, formatProblem } from './problems.ts';
import { readValue } from './reading/read.ts';
import type { Rule } from './rules.ts';
import { nodeFromValue } from './sources/source.ts';

/** The options of one slice or kernel piece: top-level names of the document with their types and rules. */
export interface Section<Values> {
  /** The heading in the reference. */
  readonly title: string;
  /** A sentence or two below the heading. */
  readonly description?: string;
  readonly schema: TUnsafe<Values>;
  /** Rules between this section's options. */
  readonly rules: readonly Rule<Values>[];
}

/** A section whatever its values are. */
export interface AnySection {
  readonly title: string;
  readonly description?: string;
  readonly schema: TSchema;
  readonly rules: readonly Rule<never>[];
}

/** The typed, checked and defaulted values of a section. */
export type SectionType<S> = S extends Section<infer Values> ? Values : never;

/** Part of some values, at any depth; lists are given whole. */
export type Overrides<T> = T extends readonly (infer Item)[]
  ? readonly Overrides<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]?: Overrides<T[Name]> }
    : T;

/** Defines a section; every member of `options` is made by `option`. */
export function section<P extends TProperties>(definition: {
  readonly title: string;
  readonly description?: string;
  readonly options: P;
  readonly rules?: readonly Rule<Static<TObject<P>>>[];
}): Section<Static<TObject<P>>> {
  const schema = Type.Unsafe<Static<TObject<P>>>({
    type: 'object',
    properties: definition.options,
    additionalProperties: false,
  });
  return {
    title: definition.title,
    ...(definition.description !== undefined && { description: definition.description }),
    schema,
    rules: definition.rules ?? [],
  };
}

/** The options of a section by their top-level names. */
export function sectionOptions(section: AnySection): Readonly<Record<string, OptionSchema>> {
  return schemaOf(section.schema).properties ?? {};
}

/**
 * A section's values without a file, for tests and tools: the defaults, with some values replaced.
 * Overrides are typed values (durations in milliseconds) and are checked as a file's would be; those
 * options that have no default must be among them. Rules are not applied.
 * Throws an Error that lists what is wrong with the overrides.
 */
export function sectionDefaults<Values>(
  section: Section<Values>,
  overrides: Overrides<Values> = {} as Overrides<Values>,
): Values {
  const findings = new Findings();
  const values = readValue(schemaOf(section.schema), nodeFromValue(overrides), { findings, path: '' });
  const problems = [...findings.errors, ...findings.warnings];
  if (problems.length > 0) throw new Error(problems.map(formatProblem).join('\n'));
  return values as Values;
}
