import { type Static, type TObject, type TProperties, type TSchema, type TUnsafe, Type } from 'typebox';
import { type OptionSchema, schemaOf } from './option.ts';
import { durationPattern } from './values/duration.ts';
import { fileModePattern } from './values/file-mode.ts';
import type { GrammarName } from './values/grammars.ts';
import { sizePattern } from './values/size.ts';

interface Range {
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
}

/** A text. An unquoted number is taken as the text that is written. */
export function string(
  constraints: { minLength?: number; pattern?: string; allowed?: string } = {},
): TUnsafe<string> {
  const { allowed, ...keywords } = constraints;
  return Type.Unsafe<string>({
    type: 'string',
    ...keywords,
    ...(allowed !== undefined && { 'x-allowed': allowed }),
  });
}

/** A whole number that JavaScript represents exactly. */
export function integer(range: Range = {}): TUnsafe<number> {
  return Type.Unsafe<number>({ type: 'integer', ...range });
}

/** A finite number. */
export function number(range: Range = {}): TUnsafe<number> {
  return Type.Unsafe<number>({ type: 'number', ...range });
}

/** `true` or `false`; a file may also contain `yes`, `no`, `on` or `off`. */
export function boolean(): TUnsafe<boolean> {
  return Type.Unsafe<boolean>({ type: 'boolean' });
}

/** One of several words or booleans. */
export function oneOf<const V extends readonly (string | boolean)[]>(...values: V): TUnsafe<V[number]> {
  return Type.Unsafe<V[number]>({ enum: values });
}

/** One of several versions. An unquoted number (`1.2`, `10`) is taken as the text that is written. */
export function versionOneOf<const V extends string>(...values: readonly V[]): TUnsafe<V> {
  const numbers = values.map(Number).filter((value) => Number.isFinite(value));
  return Type.Unsafe<V>({
    type: ['string', 'number'],
    enum: [...values, ...numbers],
    'x-grammar': 'version',
    'x-allowed': `one of ${values.join(', ')}`,
  });
}

/** A text that keeps its form although it looks like a number (`1.0` stays `1.0`). */
export function numberAsText(): TUnsafe<string> {
  return Type.Unsafe<string>({ type: ['number', 'string'], 'x-grammar': 'version' });
}

/** An integer that may also be written as a text of digits, for example a port. */
export function integerOrDigits(range: Range = {}): TUnsafe<number> {
  return Type.Unsafe<number>({
    type: ['string', 'integer'],
    pattern: '^[0-9]+$',
    'x-grammar': 'digits',
    ...range,
  });
}

/** Milliseconds, or Infinity. Written as `30s`, `10m`, `7d`, `infinity`, or a bare number of milliseconds. */
export function duration(): TUnsafe<number> {
  return grammar<number>('duration', { type: ['string', 'integer'], pattern: durationPattern, minimum: 0 });
}

/** A number of bytes or entries. Written as `10K`, `50M`, `500MiB`, or a bare number. */
export function size(): TUnsafe<number> {
  return grammar<number>('size', { type: ['string', 'integer'], pattern: sizePattern, minimum: 0 });
}

/** Permission bits, written in octal as for chmod: `660`, `0660` or `0o660` all mean 0o660. */
export function fileMode(): TUnsafe<number> {
  return grammar<number>('file-mode', { type: ['integer', 'string'], pattern: fileModePattern, minimum: 0 });
}

/** An address or a range in CIDR notation (`10.0.0.0/8`, `fc00::/7`), normalized. */
export function cidr(): TUnsafe<string> {
  return grammar<string>('cidr', { type: 'string' });
}

/** A pattern with the wildcards `*` and `?`. */
export function glob(): TUnsafe<string> {
  return grammar<string>('glob', { type: 'string' });
}

/** A regular expression that can be matched in linear time (RE2 syntax). */
export function regularExpression(): TUnsafe<string> {
  return grammar<string>('regular-expression', { type: 'string' });
}

/** A glob, or a regular expression if it begins with `^`. */
export function globOrRegularExpression(): TUnsafe<string> {
  return grammar<string>('glob-or-regular-expression', { type: 'string' });
}

/** An absolute http or https URL. */
export function httpUrl(): TUnsafe<string> {
  return string({ pattern: '^https?://[^\\s/]+(/\\S*)?$', allowed: 'an absolute http:// or https:// URL' });
}

/** A fully qualified user id. */
export function userId(): TUnsafe<string> {
  return string({ pattern: '^@[^:\\s]*:\\S+$', allowed: 'a user id like @alice:example.org' });
}

/** The part of a user id between `@` and `:`. */
export function localpart(): TUnsafe<string> {
  return string({
    pattern: '^[a-z0-9._=/+-]+$',
    allowed: 'the local part of a user id: lowercase letters, digits and . _ = / + -',
  });
}

/** A room id, with or without a server name. */
export function roomId(): TUnsafe<string> {
  return string({ pattern: '^!\\S+$', allowed: 'a room id like !abc:example.org' });
}

/** A room id or a room alias. */
export function roomIdOrAlias(): TUnsafe<string> {
  return string({
    pattern: '^(![\\S]+|#[^\\s:]+:\\S+)$',
    allowed: 'a room id or an alias like #room:example.org',
  });
}

/** The mxc:// URI of media. */
export function mxcUri(): TUnsafe<string> {
  return string({
    pattern: '^mxc://[^/\\s]+/[^/\\s]+$',
    allowed: 'an address like mxc://example.org/abc',
  });
}

/** The name of a server: a lowercase host name or address with an optional port. */
export function serverName(): TUnsafe<string> {
  return string({
    pattern: '^([a-z0-9.-]{1,255}|\\[[0-9a-f:.]{2,45}\\])(:[0-9]{1,5})?$',
    allowed: 'a lowercase host name or address with an optional port, like example.org',
  });
}

/** Allows null, meaning "unset", besides the values of the type. */
export function nullable<T extends TSchema>(type: T): TUnsafe<Static<T> | null> {
  const schema = schemaOf(type);
  const types = schema.type === undefined ? [] : [schema.type].flat();
  return Type.Unsafe<Static<T> | null>({
    ...schema,
    ...(types.length > 0 && { type: [...types, 'null'] }),
    ...(schema.enum && { enum: [...schema.enum, null] }),
    ...(schema.anyOf && { anyOf: [...schema.anyOf, { type: 'null' }] }),
  });
}

/** A list. */
export function list<T extends TSchema>(
  items: T,
  bounds: { minItems?: number; maxItems?: number } = {},
): TUnsafe<Static<T>[]> {
  return Type.Unsafe<Static<T>[]>({ type: 'array', items, ...bounds });
}

/** A mapping with known members, each an `option`. */
export function object<P extends TProperties>(members: P): TUnsafe<Static<TObject<P>>> {
  return Type.Unsafe<Static<TObject<P>>>({
    type: 'object',
    properties: members,
    additionalProperties: false,
  });
}

/** A mapping with some known members; others are passed on unchanged. */
export function openObject<P extends TProperties>(
  members: P,
): TUnsafe<Static<TObject<P>> & Record<string, unknown>> {
  return Type.Unsafe<Static<TObject<P>> & Record<string, unknown>>({
    type: 'object',
    properties: members,
    additionalProperties: true,
  });
}

/** A mapping whose content is passed on unchanged. */
export function freeObject(): TUnsafe<Record<string, unknown>> {
  return Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true });
}

/** A mapping from names chosen by the operator to values of one type. */
export function mapOf<T extends TSchema>(
  values: T,
  names?: { pattern: string; allowed: string },
): TUnsafe<Record<string, Static<T>>> {
  return Type.Unsafe<Record<string, Static<T>>>({
    type: 'object',
    additionalProperties: values,
    ...(names && { propertyNames: { pattern: names.pattern, 'x-allowed': names.allowed } }),
  });
}

/** A mapping that may also be written as the value of its most common member. */
export function withShorthand<T extends TSchema>(member: string, type: T): TUnsafe<Static<T>> {
  const schema = schemaOf(type);
  const inner = schema.properties?.[member];
  const types = [inner?.type ?? []].flat();
  return Type.Unsafe<Static<T>>({
    ...schema,
    type: [...types, 'object'],
    ...(inner?.pattern !== undefined && { pattern: inner.pattern }),
    ...(inner?.minimum !== undefined && { minimum: inner.minimum }),
    'x-shorthand': member,
  });
}

/** One of several types, distinguished by being a scalar, a list or a mapping. */
export function eitherOf<T extends readonly TSchema[]>(...types: T): TUnsafe<Static<T[number]>> {
  return Type.Unsafe<Static<T[number]>>({ anyOf: types });
}

function grammar<T>(name: GrammarName, keywords: OptionSchema): TUnsafe<T> {
  return Type.Unsafe<T>({ ...keywords, 'x-grammar': name });
}
