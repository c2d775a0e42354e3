import { maxStringLength } from '../../src/kernel/http/requests/schema-bounds.ts';
import type { RouteContract } from '../../src/kernel/http/routing/route.ts';
import type { ContractSchema } from '../support/inputs/contract-schema.ts';
import type { AcceptedValues, Values } from './accepted-values.ts';

/** Returns the JSON of an object of about this size, for a place where a contract allows any fields. */
export type Filling = (bytes: number) => string;

/** Returns the JSON of an object of about this size. @param size bytes of each field that `member` returns as JSON */
const repeated = (bytes: number, size: number, member: (index: number) => string) =>
  `{${Array.from({ length: Math.max(1, Math.floor(bytes / size)) }, (_, index) => member(index)).join()}}`;

/** Ways to fill an object. They return JSON and not objects, because making objects of this size takes seconds. */
export const fillings: Readonly<Record<string, Filling>> = {
  members: (bytes) => repeated(bytes, 12, (index) => `"k${index}":{}`),
  users: (bytes) => repeated(bytes, 40, (index) => `"@u${index}:a.test":{"D${index}":{}}`),
  list: (bytes) =>
    `{"list":[${Array(Math.max(1, Math.floor(bytes / 3)))
      .fill('[]')
      .join()}]}`,
  text: (bytes) => JSON.stringify({ text: 'x'.repeat(bytes) }),
};

/** What fills the bodies of a route. */
interface Contents {
  readonly filling: Filling;
  /** Values by the name of a field, at any depth. */
  readonly values: Values;
  /** Whether lists and maps share all bytes, and other values have only `smallSize` bytes each. */
  readonly isOverfull?: boolean;
}

/**
 * Returns the largest body that the schema of a route accepts, within a limit of bytes.
 * @param accepted values of the fields that are not filled: `everywhere` for fields at any depth, `ofRoute` for top-level
 * fields; by default every field is filled
 */
export function largestBody(
  contract: RouteContract,
  limit: number,
  filling: Filling,
  accepted: AcceptedValues = { everywhere: {}, ofRoute: {} },
): Buffer {
  const { everywhere, ofRoute } = accepted;
  const body = (contract.body ?? {}) as ContractSchema;
  const bytes = Math.max(limit - 1_000, limit / 2);
  if (Object.keys(ofRoute).length === 0)
    return Buffer.from(jsonFor(body, bytes, { filling, values: everywhere }));
  const { properties = {}, ...schema } = withFewerFields(body, Object.keys(ofRoute).length);
  const others = Object.fromEntries(
    Object.entries(properties).filter(([name]) => !Object.hasOwn(ofRoute, name)),
  );
  const isOpen = Object.keys(properties).length === 0;
  const filled =
    isOpen || Object.keys(others).length > 0
      ? jsonFor({ ...schema, properties: others }, bytes, { filling, values: everywhere })
      : '{}';
  const members = JSON.stringify(ofRoute).slice(1, -1);
  const isEmpty = filled === '{}' || members === '';
  return Buffer.from(`{${members}${isEmpty ? '' : ','}${filled.slice(1)}`);
}

/** Returns a copy of a schema whose maximum number of fields is lower by `count`. */
const withFewerFields = ({ maxProperties, ...schema }: ContractSchema, count: number): ContractSchema =>
  maxProperties === undefined ? schema : { ...schema, maxProperties: maxProperties - count };

/** Whether a route limits the number of entries of lists or maps in its body. */
export const limitsEntries = ({ body }: RouteContract): boolean =>
  /"max(Items|Properties)"/.test(JSON.stringify(body ?? {}));

/** Returns a body whose lists and maps have as many entries as the limit of bytes allows, more than the schema accepts. */
export function overfullBody({ body = {} }: RouteContract, limit: number): Buffer {
  const contents = { filling: fillings['list']!, values: {}, isOverfull: true };
  return Buffer.from(jsonFor(withoutCounts(body as ContractSchema), limit - 1_000, contents));
}

/** Returns a copy of a schema with huge maxima of items and fields. */
function withoutCounts(schema: ContractSchema): ContractSchema {
  const huge = { maxItems: 1_000_000_000, maxProperties: 1_000_000_000 };
  const copy = JSON.parse(JSON.stringify(schema), (_, value: unknown) =>
    typeof value === 'object' && value !== null && 'type' in value ? { ...value, ...huge } : value,
  ) as ContractSchema;
  return copy;
}

/** Maximum bytes of a form unless the route names another maximum. */
const maxFormBytes = 64 * 1024;

/** Maximum number of fields of a form. */
const maxFields = 1_000;

/** Returns the largest forms that a route accepts, by a description of what fills them. */
export function largestForms(
  contract: RouteContract,
  { everywhere, ofRoute }: AcceptedValues,
): ReadonlyMap<string, Buffer> {
  const names = Object.keys((contract.body as ContractSchema | undefined)?.properties ?? {});
  const bytes = (contract.bodyLimit ?? maxFormBytes) - 1_000;
  const share = Math.floor(bytes / Math.max(1, names.length)) - 100;
  const formOf = (value: string) => names.map((name) => `${name}=${value}`).join('&');
  const size = Math.floor(bytes / maxFields);
  const values: Values = { ...everywhere, ...ofRoute };
  const accepted = new URLSearchParams(
    names.map((name): [string, string] => [name, Object.hasOwn(values, name) ? String(values[name]) : 'x']),
  ).toString();
  const fields = (nameOf: (index: number) => string) =>
    Array.from({ length: maxFields - names.length }, (_, index) =>
      `${nameOf(index)}=`.padEnd(size - 1, 'x'),
    ).join('&');
  return new Map(
    Object.entries({
      'accepted fields': accepted,
      'long fields': formOf('x'.repeat(share)),
      'encoded fields': formOf('%C3%A4'.repeat(Math.floor(share / 6))),
      'many fields': `${formOf('x')}&${fields((index) => `f${index}`)}`,
      'fields of one name': `${formOf('x')}&${fields(() => names[0] ?? 'f')}`,
    }).map(([what, text]) => [what, Buffer.from(text)]),
  );
}

/** Whether a schema accepts lists or objects. */
const hasEntries = ({ type, anyOf }: ContractSchema): boolean =>
  type === 'array' || type === 'object' || anyOf?.some(hasEntries) === true;

/** Bytes of each value besides the lists and maps of an overfull body. */
const smallSize = 20;

/** Returns the JSON of the largest value that the schema accepts. */
function jsonFor(schema: ContractSchema, bytes: number, contents: Contents): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf) return jsonFor(lastNotNull(schema.anyOf), bytes, contents);
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
      return `[${itemsOf(schema, bytes, contents).join()}]`;
    default:
      return objectOf(schema, bytes, contents);
  }
}

/** Returns the last schema with another type than `null`, or the first schema if there is none. */
const lastNotNull = (schemas: readonly ContractSchema[]) =>
  schemas.findLast(({ type }) => type !== 'null') ?? schemas[0]!;

function textOf({ maxLength = maxStringLength, pattern }: ContractSchema, bytes: number): string {
  if (pattern?.includes('@')) return '@user:a.test';
  if (pattern !== undefined) return '!room:a.test';
  return 'x'.repeat(Math.max(1, Math.min(maxLength, bytes)));
}

function itemsOf({ items, maxItems = 1_000 }: ContractSchema, bytes: number, contents: Contents): string[] {
  if (Array.isArray(items)) return items.map((item: ContractSchema) => jsonFor(item, 100, contents));
  const size = Math.max(20, Math.floor(bytes / maxItems) - 1);
  const count = Math.min(maxItems, Math.floor(bytes / size));
  const item = jsonFor((items ?? {}) as ContractSchema, Math.min(size, 200), contents);
  return Array.from({ length: count }, (_, index) =>
    item.startsWith('"x') ? JSON.stringify(`@user${index}:a.test`) : item,
  );
}

function objectOf(schema: ContractSchema, bytes: number, contents: Contents): string {
  const { properties = {}, patternProperties, additionalProperties } = schema;
  const inner = Object.values(patternProperties ?? {})[0] ?? additionalProperties;
  if (typeof inner === 'object') {
    const { maxProperties = 1_000 } = schema;
    const size = Math.max(60, Math.floor(bytes / maxProperties));
    const count = Math.min(maxProperties, Math.floor(bytes / size));
    const value = jsonFor(inner, size - 30, contents);
    return `{${Array.from({ length: count }, (_, index) => `"@user${index}:a.test":${value}`).join()}}`;
  }
  const names = Object.entries(properties);
  if (names.length === 0) return contents.filling(bytes);
  const { values, isOverfull } = contents;
  const large = isOverfull ? names.filter(([, member]) => hasEntries(member)) : names;
  const share = Math.floor(bytes / Math.max(1, large.length));
  const members = names.flatMap(([name, member]) => {
    const size = large.some(([other]) => other === name) ? share : smallSize;
    const value = Object.hasOwn(values, name)
      ? JSON.stringify(values[name])
      : jsonFor(member, size, contents);
    return value === undefined ? [] : [`${JSON.stringify(name)}:${value}`];
  });
  return `{${members.join()}}`;
}
