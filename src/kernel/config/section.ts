import { type Static, type TObject, type TProperties, type TSchema, type TUnsafe, Type } from 'typebox';
import { type OptionSchema, schemaOf } from './option.ts';
import type { Rule } from './rules.ts';

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
