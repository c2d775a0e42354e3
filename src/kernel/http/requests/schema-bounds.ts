import type { TSchema } from 'typebox';

/** Maximum characters of a string whose schema has no bound of its own: as many as an event has bytes. */
export const maxStringLength = 65_536;

/** The keywords of a schema that may contain one schema. */
const single = ['items', 'additionalProperties'] as const;

/** The keywords of a schema that may contain a list of schemas. */
const lists = ['anyOf', 'allOf', 'oneOf', 'items'] as const;

/** The keywords of a schema that contain an object of schemas by name. */
const maps = ['properties', 'patternProperties'] as const;

type Schema = { [keyword: string]: unknown };

/**
 * Returns a copy of a schema in which each string has a maximum length and each integer is one that JSON can represent
 * exactly (appendices of the specification, "Canonical JSON"). Lists and maps have bounds of their own, which
 * depend on the work for each entry (test/contracts/bounds.test.ts).
 */
export function withBounds(schema: TSchema): TSchema {
  return bounded(schema as unknown as Schema) as unknown as TSchema;
}

function bounded(schema: Schema): Schema {
  // Copies non-enumerable members too: the library recognizes the kinds of schemas by them.
  const copy = Object.create(
    Object.getPrototypeOf(schema) as object | null,
    Object.getOwnPropertyDescriptors(schema),
  ) as Schema;
  if (copy['type'] === 'integer') {
    if (copy['minimum'] === undefined) set(copy, 'minimum', Number.MIN_SAFE_INTEGER);
    if (copy['maximum'] === undefined) set(copy, 'maximum', Number.MAX_SAFE_INTEGER);
  }
  if (copy['type'] === 'string' && copy['maxLength'] === undefined) set(copy, 'maxLength', maxStringLength);
  for (const keyword of single) {
    if (isSchema(copy[keyword])) set(copy, keyword, bounded(copy[keyword]));
  }
  for (const keyword of lists) {
    const inner = copy[keyword];
    if (Array.isArray(inner))
      set(
        copy,
        keyword,
        inner.map((one: Schema) => (isSchema(one) ? bounded(one) : one)),
      );
  }
  for (const keyword of maps) {
    const inner = copy[keyword];
    if (!isSchema(inner)) continue;
    const members = Object.entries(inner).map(([name, one]) => [name, bounded(one as Schema)] as const);
    set(copy, keyword, Object.fromEntries(members));
  }
  return copy;
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function set(schema: Schema, keyword: string, value: unknown): void {
  Object.defineProperty(schema, keyword, { value, enumerable: true, configurable: true, writable: true });
}
