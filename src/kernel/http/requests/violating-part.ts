import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { isScalar } from './scalar-schemas.ts';

/** A part of a value with its schema. */
export interface Part {
  readonly schema: TSchema;
  readonly value: unknown;
  /** Names of members and indexes of items that lead to the part. */
  readonly path: readonly string[];
}

/** The keywords of a schema that describe members and items. */
interface SchemaOfEntries {
  readonly type?: string;
  readonly items?: TSchema;
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly patternProperties?: Readonly<Record<string, TSchema>>;
  readonly anyOf?: readonly TSchema[];
}

/**
 * Finds the innermost member or item of a value that violates its schema. A validator that collects errors takes
 * several microseconds for each entry, so a large value must be narrowed first.
 * @returns the part, and its schema without the schemas of its members and items, so that collecting the errors does
 * not check each entry again; the schemas inside a union are kept
 */
export function violatingPart({ schema: given, value, path }: Part): Part {
  const schema = schemaOfEntries(given, value);
  for (const { schema: innerSchema, entries } of describedEntries(schema, value)) {
    const validator = Compile(innerSchema);
    for (const [name, inner] of entries) {
      if (!validator.Check(inner))
        return violatingPart({ schema: innerSchema, value: inner, path: [...path, name] });
    }
  }
  return { schema: withoutEntries(schema), value, path };
}

/**
 * Returns the only schema of a union that may accept an object or list, for instance the other schema of a union with
 * null. Returns the given schema if it is not a union, or if several of its schemas or none may accept an object or
 * list.
 */
function schemaOfEntries(schema: TSchema, value: unknown): TSchema {
  const { anyOf } = schema as SchemaOfEntries;
  if (anyOf === undefined || typeof value !== 'object' || value === null) return schema;
  const [only, ...others] = anyOf.filter((option) => !isScalar(option));
  return only === undefined || others.length > 0 ? schema : schemaOfEntries(only, value);
}

interface DescribedEntries {
  readonly schema: TSchema;
  readonly entries: Iterable<readonly [name: string, value: unknown]>;
}

/** Returns the members and items of a value by the schema that describes them. */
function describedEntries(schema: TSchema, value: unknown): DescribedEntries[] {
  const { type, items, properties = {}, patternProperties = {} } = schema as SchemaOfEntries;
  if (type === 'array' && Array.isArray(value) && isSchema(items))
    return [{ schema: items, entries: Object.entries(value) }];
  if (type !== 'object' || typeof value !== 'object' || value === null) return [];
  const members = Object.entries(properties)
    .filter(([name]) => Object.hasOwn(value, name))
    .map(([name, member]) => ({
      schema: member,
      entries: [[name, (value as Record<string, unknown>)[name]] as const],
    }));
  const [ofAnyName] = Object.values(patternProperties);
  return ofAnyName === undefined
    ? members
    : [...members, { schema: ofAnyName, entries: Object.entries(value) }];
}

/** Returns a copy of a schema that checks the names of members, and not the values of members and items. */
function withoutEntries(schema: TSchema): TSchema {
  const { items, properties, patternProperties } = schema as SchemaOfEntries;
  const withAnyValue = (schemas: object) =>
    Object.fromEntries(Object.keys(schemas).map((name) => [name, {}]));
  return {
    ...schema,
    // The list of schemas of a tuple is kept, since a tuple has few items.
    ...(isSchema(items) && { items: {} }),
    ...(properties && { properties: withAnyValue(properties) }),
    ...(patternProperties && { patternProperties: withAnyValue(patternProperties) }),
  } as TSchema;
}

const isSchema = (value: unknown): value is TSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
