import type { Static, TSchema, TUnsafe } from 'typebox';
import type { GrammarName } from './values/grammars.ts';

/**
 * The JSON Schema of an option, as used in this module: standard keywords, and keywords of this program (`x-…`) that
 * other validators ignore.
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
  /** The name of the grammar of a scalar's text. */
  readonly 'x-grammar'?: GrammarName;
  /** Describes the allowed values in messages, where the words for the grammar or type are too general. */
  readonly 'x-allowed'?: string;
  /** The option has no default: it must be given whenever its mapping is given. */
  readonly 'x-required'?: boolean;
  /** The member of the mapping whose value may be given instead of the mapping, as a scalar. */
  readonly 'x-shorthand'?: string;
  readonly 'x-unit'?: string;
  readonly 'x-since'?: string;
  readonly 'x-changed'?: readonly string[];
  readonly 'x-deprecated-names'?: readonly string[];
  readonly 'x-secret'?: boolean;
  readonly 'x-reloadable'?: boolean;
  /** For an option that names a file: the sibling option whose value the file contains. */
  readonly 'x-file-for'?: string;
  /** The kind of content that the server creates when the file named here is missing. */
  readonly 'x-created'?: 'secret' | 'signing-key';
  /** The value when the option is not given, if it differs from the `default` that the reference shows. */
  readonly 'x-unset'?: unknown;
  /** The ledger of options (the list of options that a test proves) counts this mapping as one, and not its members. */
  readonly 'x-counts-as-one'?: boolean;
}

/** Properties of an option besides its type. */
export interface OptionNotes {
  /** Markdown in complete sentences. */
  readonly description: string;
  /**
   * The value when the option is not given, as written in a file (`10m`, not 600000). The default of a mapping consists
   * of the defaults of its members. Absent when `required` is set.
   */
  readonly default?: unknown;
  /** There is no default; the option must be given whenever its mapping is given. */
  readonly required?: true;
  /** The unit of a number, where the grammar does not imply it. */
  readonly unit?: string;
  /** The release that added the option, in the numbering of the interface document. */
  readonly since?: string;
  /** Changes in later releases, one sentence each. */
  readonly changed?: readonly string[];
  /** Old names that are still accepted, as dotted paths. */
  readonly deprecatedNames?: readonly string[];
  /** The option itself is deprecated. */
  readonly deprecated?: true;
  /** Whether the value is a secret, which is never shown, logged or quoted. */
  readonly secret?: true;
  /** A reload applies it without a restart. */
  readonly reloadable?: true;
  /** For `x_path` options: the sibling option whose value the file contains. */
  readonly fileFor?: string;
  /** For options that name a file: the kind of content that the server creates when the file is missing. */
  readonly created?: 'secret' | 'signing-key';
  /** The value when the option is not given, if it differs from the `default` that the reference shows. */
  readonly unset?: null;
  /** The ledger of options counts this mapping as one option, and not its members. */
  readonly countsAsOne?: true;
}

/** Returns the type with the properties of an option attached. The argument is not changed. */
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
    ...(notes.countsAsOne && { 'x-counts-as-one': true }),
  };
  return { ...type, ...keywords } as unknown as TUnsafe<Static<T>>;
}

/** Returns the JSON Schema keywords of a type created in this module. */
export function schemaOf(type: TSchema): OptionSchema {
  return type as OptionSchema;
}
