import { maxStringLength } from '../../src/kernel/http/requests/schema-bounds.ts';
import type { RouteContract } from '../../src/kernel/http/routing/route.ts';
import type { ContractSchema } from '../support/inputs/contract-schema.ts';

/** Returns an object of a number of bytes as JSON. It fills each place where a contract allows an object with any fields. */
export type Filling = (bytes: number) => string;

/** Returns an object of fields that takes a number of bytes as JSON. @param size bytes of each field */
const repeated = (bytes: number, size: number, member: (index: number) => string) =>
  `{${Array.from({ length: Math.max(1, Math.floor(bytes / size)) }, (_, index) => member(index)).join()}}`;

/** Ways to fill an object with a number of bytes of JSON. They return texts, because objects of that size take seconds to make. */
export const fillings: Readonly<Record<string, Filling>> = {
  members: (bytes) => repeated(bytes, 12, (index) => `"k${index}":{}`),
  users: (bytes) => repeated(bytes, 40, (index) => `"@u${index}:a.test":{"D${index}":{}}`),
  list: (bytes) =>
    `{"list":[${Array(Math.max(1, Math.floor(bytes / 3)))
      .fill('[]')
      .join()}]}`,
  text: (bytes) => JSON.stringify({ text: 'x'.repeat(bytes) }),
};

/** Returns the largest bodies that the schema of a route accepts, within its limit of bytes. */
export function largestBody(contract: RouteContract, limit: number, filling: Filling): Buffer {
  return Buffer.from(jsonFor((contract.body ?? {}) as ContractSchema, limit - 1_000, filling));
}

/** Returns a body whose lists and maps have as many entries as the limit of bytes allows, more than the schema accepts. */
export function overfullBody({ body = {} }: RouteContract, limit: number): Buffer {
  return Buffer.from(jsonFor(withoutCounts(body as ContractSchema), limit - 1_000, fillings['list']!));
}

/** Returns a copy of a schema with huge maxima of items and fields. */
function withoutCounts(schema: ContractSchema): ContractSchema {
  const huge = { maxItems: 1_000_000_000, maxProperties: 1_000_000_000 };
  const copy = JSON.parse(JSON.stringify(schema), (_, value: unknown) =>
    typeof value === 'object' && value !== null && 'type' in value ? { ...value, ...huge } : value,
  ) as ContractSchema;
  return copy;
}

/** Maximum bytes and fields of a form. */
const [maxFormBytes, maxFields] = [64 * 1024, 1_000];

/** Returns the largest forms that a route accepts, by a description of what fills them. */
export function largestForms(contract: RouteContract): ReadonlyMap<string, Buffer> {
  const names = Object.keys((contract.body as ContractSchema | undefined)?.properties ?? {});
  const bytes = maxFormBytes - 1_000;
  const share = Math.floor(bytes / Math.max(1, names.length)) - 100;
  const formOf = (value: string) => names.map((name) => `${name}=${value}`).join('&');
  const size = Math.floor(bytes / maxFields);
  const fields = (nameOf: (index: number) => string) =>
    Array.from({ length: maxFields - names.length }, (_, index) =>
      `${nameOf(index)}=`.padEnd(size - 1, 'x'),
    ).join('&');
  return new Map(
    Object.entries({
      'long fields': formOf('x'.repeat(share)),
      'encoded fields': formOf('%C3%A4'.repeat(Math.floor(share / 6))),
      'many fields': `${formOf('x')}&${fields((index) => `f${index}`)}`,
      'fields of one name': `${formOf('x')}&${fields(() => names[0] ?? 'f')}`,
    }).map(([what, text]) => [what, Buffer.from(text)]),
  );
}

/** Returns the JSON of the largest value that the schema accepts. */
function jsonFor(schema: ContractSchema, bytes: number, filling: Filling): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf) return jsonFor(schema.anyOf.at(-1)!, bytes, filling);
  switch (schema.type) {
    case 'string':
      return JSON.stringify(textOf(schema, bytes));
    case 'integer':
    case 'number':
      return String(Math.min(schema.maximum ?? 1_000, 1_000));
    case 'boolean':
      return 'true';
    case 'null':
      return 'null';
    case 'array':
      return `[${itemsOf(schema, bytes, filling).join()}]`;
    default:
      return objectOf(schema, bytes, filling);
  }
}

function textOf({ maxLength = maxStringLength, pattern }: ContractSchema, bytes: number): string {
  if (pattern?.includes('@')) return '@user:a.test';
  if (pattern !== undefined) return '!room:a.test';
  return 'x'.repeat(Math.max(1, Math.min(maxLength, bytes)));
}

function itemsOf({ items, maxItems = 1_000 }: ContractSchema, bytes: number, filling: Filling): string[] {
  if (Array.isArray(items)) return items.map((item: ContractSchema) => jsonFor(item, 100, filling));
  const size = Math.max(20, Math.floor(bytes / maxItems) - 1);
  const count = Math.min(maxItems, Math.floor(bytes / size));
  const item = jsonFor((items ?? {}) as ContractSchema, Math.min(size, 200), filling);
  return Array.from({ length: count }, (_, index) =>
    item.startsWith('"x') ? JSON.stringify(`@user${index}:a.test`) : item,
  );
}

function objectOf(schema: ContractSchema, bytes: number, filling: Filling): string {
  const { properties = {}, patternProperties, additionalProperties } = schema;
  const inner = Object.values(patternProperties ?? {})[0] ?? additionalProperties;
  if (typeof inner === 'object') {
    const { maxProperties = 1_000 } = schema;
    const size = Math.max(60, Math.floor(bytes / maxProperties));
    const count = Math.min(maxProperties, Math.floor(bytes / size));
    const value = jsonFor(inner, size - 30, filling);
    return `{${Array.from({ length: count }, (_, index) => `"@user${index}:a.test":${value}`).join()}}`;
  }
  const names = Object.entries(properties);
  if (names.length === 0) return filling(bytes);
  const share = Math.floor(bytes / names.length);
  const members = names.map(([name, member]) => `${JSON.stringify(name)}:${jsonFor(member, share, filling)}`);
  return `{${members.join()}}`;
}
