import type { Static, TSchema, TUnsafe } from 'typebox';
import type { GrammarName } from './values/grammars.ts';

/**
 * The JSON Schema of an option as this module reads it: the standard's keywords, and a few of our own
 * (`x-…`) that validators elsewhere pass over.
 */
export interface OptionSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, OptionSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | OptionSchema;
  readonly propertyNames?: OptionSchema;
  readonly items?: OptionSchema;
  readonly anyOf?: readonly OptionSchema[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly pattern?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly deprecated?: boolean;
  /** The name of the grammar that a scalar's text follows. */
  readonly 'x-grammar'?: GrammarName;
  /** How the allowed values are named in messages, where the grammar's or type's own words are too broad. */
  readonly 'x-allowed'?: string;
  /** The option has no default: it must be given wherever its mapping is. */
  readonly 'x-required'?: boolean;
  /** A scalar here stands for a mapping with this one member. */
  readonly 'x-shorthand'?: string;
  readonly 'x-unit'?: string;
  readonly 'x-since'?: string;
  readonly 'x-changed'?: readonly string[];
  readonly 'x-deprecated-names'?: readonly string[];
  readonly 'x-secret'?: boolean;
  readonly 'x-reloadable'?: boolean;
  /** The sibling option whose value the file named here holds. */
  readonly 'x-file-for'?: string;
  /** What the server makes when the file named here is missing. */
  readonly 'x-created'?: 'secret' | 'signing-key';
  /** The value when nothing is given, where that means something else than giving the default. */
  readonly 'x-unset'?: unknown;
  /** The ledger counts this mapping as one option. */
  readonly 'x-whole'?: boolean;
}

/** What an option says about itself besides its type. */
export interface OptionNotes {
  /** Markdown, complete sentences. */
  readonly description: string;
  /**
   * The value when nothing is given, as it would be written in a file (`10m`, not 600000). Mappings
   * take theirs from their members. Leave it out together with `required`.
   */
  readonly default?: unknown;
  /** There is no default; wherever the surrounding mapping is given, this must be too. */
  readonly required?: true;
  /** What a number counts, where the grammar does not say it. */
  readonly unit?: string;
  /** The release in which the option appeared, in the numbering of the interface document. */
  readonly since?: string;
  /** What changed in later releases, one sentence each. */
  readonly changed?: readonly string[];
  /** Old names that are still accepted, as dotted paths. */
  readonly deprecatedNames?: readonly string[];
  /** The option itself is deprecated. */
  readonly deprecated?: true;
  /** Never shown, logged or quoted. */
  readonly secret?: true;
  /** Taken over by a reload, without a restart. */
  readonly reloadable?: true;
  /** For `x_path` options: the sibling whose value the named file holds. */
  readonly fileFor?: string;
  /** For options that name a file: what the server makes when it is missing. */
  readonly created?: 'secret' | 'signing-key';
  /** The value when nothing is given, where that means something else than giving the default. */
  readonly unset?: null;
  /** A mapping that the ledger counts as one option. */
  readonly whole?: true;
}

/** Attaches to a type what an option says about itself. The type is not changed. */
export function option<T extends TSchema>(type: T, notes: OptionNotes): TUnsafe<Static<T>> {
  const keywords: OptionSchema = {
    description: notes.description,
    ...(notes.default !== undefined && { default: notes.default }),
    ...(notes.deprecated && { deprecated: true }),
    ...(notes.required && { 'x-required': true }),
    ...(notes.unit !== undefined && { 'x-unit': notes.unit }),
    ...(notes.since !== undefined && { 'x-since': notes.since }),
    ...(notes.changed && { 'x-changed': notes.changed }),
    ...(notes.deprecatedNames && { 'x-deprecated-names': notes.deprecatedNames }),
    ...(notes.secret && { 'x-secret': true }),
    ...(notes.reloadable && { 'x-reloadable': true }),
    ...(notes.fileFor !== undefined && { 'x-file-for': notes.fileFor }),
    ...(notes.created && { 'x-created': notes.created }),
    ...(notes.unset !== undefined && { 'x-unset': notes.unset }),
    ...(notes.whole && { 'x-whole': true }),
  };
  return { ...type, ...keywords } as unknown as TUnsafe<Static<T>>;
}

/** The JSON Schema keywords of a type made in this module. */
export function schemaOf(type: TSchema): OptionSchema {
  return type as OptionSchema;
}
