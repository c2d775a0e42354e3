import { type Static, type TObject, type TProperties, type TSchema, type TUnsafe, Type } from 'typebox';
import { type OptionSchema, schemaOf } from './option.ts';
import type { Rule } from './rules.ts';

/** The options of one slice or kernel part: top-level names of the document with their types and rules. */
export interface Section<Values> {
  /** Heading in the reference of options. */
  readonly title: string;
  /** One or two sentences below the heading. */
  readonly description?: string;
  readonly schema: TUnsafe<Values>;
  /** Rules between options of this section. */
  readonly rules: readonly Rule<Values>[];
}

/** A section with values of any type. */
export interface AnySection {
  readonly title: string;
  readonly description?: string;
  readonly schema: TSchema;
  readonly rules: readonly Rule<never>[];
}

/** The type of the values of a section after checks and defaults. */
export type SectionType<S> = S extends Section<infer Values> ? Values : never;

/** Defines a section. Every member of `options` is created by `option`. */
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

/** Returns the options of a section by top-level name. */
export function sectionOptions(section: AnySection): Readonly<Record<string, OptionSchema>> {
  return schemaOf(section.schema).properties ?? {};
}
