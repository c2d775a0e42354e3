import { maxStringLength } from '../../src/kernel/http/requests/schema-bounds.ts';
import type { RouteContract } from '../../src/kernel/http/routing/route.ts';
import type { ContractSchema } from '../support/inputs/contract-schema.ts';

/** What fills the objects whose members a contract leaves open. */
export type Filling = (bytes: number) => object;

const repeated = (bytes: number, size: number, entry: (index: number) => readonly [string, unknown]) =>
  Object.fromEntries(
    Array.from({ length: Math.max(1, Math.floor(bytes / size)) }, (_, index) => entry(index)),
  );

/** Ways to fill an object with so many bytes of JSON. */
export const fillings: Readonly<Record<string, Filling>> = {
  members: (bytes) => repeated(bytes, 12, (index) => [`k${index}`, {}]),
  users: (bytes) => repeated(bytes, 40, (index) => [`@u${index}:a.test`, { [`D${index}`]: {} }]),
  list: (bytes) => ({ list: Array<object>(Math.max(1, Math.floor(bytes / 3))).fill([]) }),
  text: (bytes) => ({ text: 'x'.repeat(bytes) }),
};

/** Returns the largest bodies that the schema of a route accepts, within its limit of bytes. */
export function largestBody(contract: RouteContract, limit: number, filling: Filling): Buffer {
  const body = valueFor((contract.body ?? {}) as ContractSchema, limit - 1_000, filling);
  return Buffer.from(JSON.stringify(body));
}

/** Maximum bytes and fields of a form. */
const [maxFormBytes, maxFields] = [64 * 1024, 1_000];

/** Returns forms that are as large as a route accepts them, by what they are filled with. */
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

function valueFor(schema: ContractSchema, bytes: number, filling: Filling): unknown {
  if (schema.const !== undefined) return schema.const;
  if (schema.anyOf) return valueFor(schema.anyOf.at(-1)!, bytes, filling);
  switch (schema.type) {
    case 'string':
      return textOf(schema, bytes);
    case 'integer':
    case 'number':
      return Math.min(schema.maximum ?? 1_000, 1_000);
    case 'boolean':
      return true;
    case 'null':
      return null;
    case 'array':
      return listOf(schema, bytes, filling);
    default:
      return objectOf(schema, bytes, filling);
  }
}

function textOf({ maxLength = maxStringLength, pattern }: ContractSchema, bytes: number): string {
  if (pattern?.includes('@')) return '@user:a.test';
  if (pattern !== undefined) return '!room:a.test';
  return 'x'.repeat(Math.max(1, Math.min(maxLength, bytes)));
}

function listOf({ items, maxItems = 1_000 }: ContractSchema, bytes: number, filling: Filling): unknown[] {
  if (Array.isArray(items)) return items.map((item: ContractSchema) => valueFor(item, 100, filling));
  const size = Math.max(20, Math.floor(bytes / maxItems) - 1);
  const count = Math.min(maxItems, Math.floor(bytes / size));
  return Array.from({ length: count }, (_, index) => {
    const value = valueFor((items ?? {}) as ContractSchema, Math.min(size, 200), filling);
    return typeof value === 'string' && value.startsWith('x') ? `@user${index}:a.test` : value;
  });
}

function objectOf(schema: ContractSchema, bytes: number, filling: Filling): object {
  const { properties = {}, patternProperties, additionalProperties } = schema;
  const inner = Object.values(patternProperties ?? {})[0] ?? additionalProperties;
  if (typeof inner === 'object') {
    const { maxProperties = 1_000 } = schema;
    const size = Math.max(60, Math.floor(bytes / maxProperties));
    const count = Math.min(maxProperties, Math.floor(bytes / size));
    const entry = (index: number) => [`@user${index}:a.test`, valueFor(inner, size - 30, filling)] as const;
    return Object.fromEntries(Array.from({ length: count }, (_, index) => entry(index)));
  }
  const names = Object.entries(properties);
  if (names.length === 0) return filling(bytes);
  const share = Math.floor(bytes / names.length);
  return Object.fromEntries(names.map(([name, member]) => [name, valueFor(member, share, filling)]));
}
