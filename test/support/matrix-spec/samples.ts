import type { Schema } from './facts.ts';
import { namedSchema } from './validators.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** A valid text for each `pattern` and `format` that the schemas require of strings and of names of fields. */
const texts: Readonly<Record<string, string>> = {
  '^!': '!room:example.org',
  '^@': '@user:example.org',
  '^#': '#alias:example.org',
  '^\\$': '$event',
  '^mxc:\\/\\/': 'mxc://example.org/media',
  '^turns?:': 'turn:example.org',
  '^(avatar_url|displayname|m\\.tz|[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)+)$': 'org.example.field',
  uri: 'https://example.org/',
  email: 'user@example.org',
};

const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const listOf = (operand: unknown): readonly Schema[] => (Array.isArray(operand) ? operand : []);
const schemasOf = (operand: unknown): readonly [string, Schema][] =>
  isJsonObject(operand) ? (Object.entries(operand) as [string, Schema][]) : [];
const typesOf = ({ type }: Schema): readonly string[] =>
  type === undefined ? [] : ([type].flat() as string[]);

/** Returns a value that fits a schema: with every field that the schema names, or only with the required ones. */
export function sampleOf(schema: Schema, fields: 'all' | 'required'): unknown {
  if (typeof schema['$ref'] === 'string') return sampleOf(namedSchema(schema['$ref']), fields);
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  const parts = listOf(schema['allOf']);
  const [choice] = listOf(schema['oneOf'] ?? schema['anyOf']);
  if (parts.length > 0 || choice !== undefined) {
    const { allOf, oneOf, anyOf, ...rest } = schema;
    const samples = [...parts, ...(choice ? [choice] : []), rest].map((part) => sampleOf(part, fields));
    return samples.reduce(mergeSamples);
  }
  const isObject = schema['properties'] !== undefined || schema['required'] !== undefined;
  const [type = isObject ? 'object' : 'unknown'] = typesOf(schema);
  if (type === 'object') return sampleObject(schema, fields);
  if (type === 'array') return sampleArray(schema, fields);
  if (type === 'string') return texts[String(schema['pattern'] ?? schema['format'])] ?? 'text';
  return { integer: 7, number: 7.5, boolean: true, null: null }[type];
}

function sampleObject(schema: Schema, fields: 'all' | 'required'): JsonObject {
  const required = (schema['required'] ?? []) as readonly string[];
  const properties = schemasOf(schema['properties']).filter(
    ([name]) => fields === 'all' || required.includes(name),
  );
  const sample = properties.map(([name, field]): [string, unknown] => [name, sampleOf(field, fields)]);
  const hasUnnamedFields = fields === 'all' && schema['maxProperties'] !== 0;
  if (hasUnnamedFields || schema['minProperties'] !== undefined) {
    const patterns = schemasOf(schema['patternProperties']);
    for (const [pattern, field] of patterns) sample.push([texts[pattern]!, sampleOf(field, fields)]);
    const additional = schema['additionalProperties'];
    if (isJsonObject(additional)) sample.push(['additional', sampleOf(additional, fields)]);
    else if (sample.length === 0 && schema['minProperties'] !== undefined)
      sample.push(['additional', 'text']);
  }
  return Object.fromEntries(sample.filter(([, value]) => value !== undefined));
}

function sampleArray(schema: Schema, fields: 'all' | 'required'): readonly unknown[] {
  const length = Number(schema['minItems'] ?? (fields === 'all' ? 1 : 0));
  const items = schema['items'];
  return Array.from({ length }, () => (isJsonObject(items) ? sampleOf(items, fields) : 'item'));
}

function mergeSamples(a: unknown, b: unknown): unknown {
  if (!isJsonObject(a) || !isJsonObject(b)) return b ?? a;
  const merged: Record<string, unknown> = { ...a };
  for (const [name, value] of Object.entries(b)) merged[name] = mergeSamples(a[name], value);
  return merged;
}

/**
 * Yields variants of a sample. Each variant breaks one rule of the schema, and comes with that rule. Does not break
 * `oneOf` and `anyOf`.
 */
export function* brokenSamples(schema: Schema, sample: unknown): Generator<[rule: string, value: unknown]> {
  if (typeof schema['$ref'] === 'string') yield* brokenSamples(namedSchema(schema['$ref']), sample);
  for (const part of listOf(schema['allOf'])) yield* brokenSamples(part, sample);
  const types = typesOf(schema);
  if (types.length > 0) yield [`type ${types}`, valueOfNoneOf(types)];
  if (schema['enum'] !== undefined) yield ['enum', 'none of the allowed values'];
  if (schema['pattern'] !== undefined) yield ['pattern', '\n'];
  if (Array.isArray(sample) && sample.length > 0 && isJsonObject(schema['items'])) {
    for (const [rule, item] of brokenSamples(schema['items'], sample[0])) {
      yield [`item: ${rule}`, sample.with(0, item)];
    }
  }
  if (isJsonObject(sample)) yield* brokenFields(schema, sample);
}

function* brokenFields(schema: Schema, sample: JsonObject): Generator<[rule: string, value: unknown]> {
  for (const name of (schema['required'] ?? []) as readonly string[]) {
    const { [name]: _removed, ...rest } = sample;
    yield [`${name} is required`, rest];
  }
  for (const [name, value] of Object.entries(sample)) {
    const field = fieldSchema(schema, name);
    if (field === undefined) continue;
    for (const [rule, broken] of brokenSamples(field, value)) {
      yield [`${name}: ${rule}`, { ...sample, [name]: broken }];
    }
  }
}

function fieldSchema(schema: Schema, name: string): Schema | undefined {
  const property = schemasOf(schema['properties']).find(([other]) => other === name);
  const matching = schemasOf(schema['patternProperties']).find(([pattern]) => texts[pattern] === name);
  const additional = schema['additionalProperties'];
  return property?.[1] ?? matching?.[1] ?? (isJsonObject(additional) ? additional : undefined);
}

function valueOfNoneOf(types: readonly string[]): unknown {
  if (!types.includes('boolean')) return true;
  if (!types.includes('string')) return 'text';
  return [];
}
