import type { RouteContract } from '../../src/kernel/http/routing/route.ts';
import type { AcceptedValues } from './accepted-values.ts';

/** The parts of a JSON Schema of query parameters that values are made from. */
interface Schema {
  readonly type?: string;
  readonly const?: unknown;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

/** Maximum characters of a query: the head of a request has at most 64 KiB. */
const maxCharacters = 56_000;

/**
 * Returns the largest queries that a route may receive, by a description of what fills them. For a route without
 * parameters, the map is empty, or for a `GET` has a query of unknown parameters, because some routes read all of them.
 */
export function largestQueries(
  { query, method }: RouteContract,
  { everywhere, ofRoute }: AcceptedValues,
): ReadonlyMap<string, string> {
  const { properties = {}, required = [] } = (query ?? {}) as Schema;
  if (query === undefined && method === 'GET')
    return new Map([
      ['many parameters', Array.from({ length: 4_000 }, (_, index) => `parameter${index}=`).join('&')],
    ]);
  const names = Object.entries(properties);
  const queries = new Map<string, string>();
  const texts = names.filter(([, { type }]) => type === 'string');
  const lists = names.filter(([, { type }]) => type === 'array');
  const share = Math.floor(maxCharacters / Math.max(1, texts.length + lists.length));
  const textOf = ({ maxLength = maxCharacters }: Schema) => 'x'.repeat(Math.min(maxLength, share - 100));
  const plainParameters = names.flatMap(([name, schema]) => {
    if (Object.hasOwn(ofRoute, name)) return [[name, String(ofRoute[name])] as const];
    if (schema.type === 'boolean' && Object.hasOwn(everywhere, name))
      return [[name, String(everywhere[name])] as const];
    // A request that waits would only take longer: its CPU time stays the same.
    const value = name.startsWith('timeout') ? '0' : plainValue(schema);
    if (value !== undefined) return [[name, value] as const];
    if (!required.includes(name)) return [];
    return [[name, String(everywhere[name] ?? 'x')] as const];
  });
  const add = (filling: string, parameters: readonly (readonly [string, string])[]) =>
    queries.set(filling, String(new URLSearchParams(parameters.map(([...pair]) => pair))));
  if (names.length > 0) add('accepted values', plainParameters);
  for (const [name, schema] of texts)
    add(`long ${name}`, [...plainParameters.filter(([other]) => other !== name), [name, textOf(schema)]]);
  for (const [name, { maxItems = 1_000, items: itemSchema = {} }] of lists) {
    const size = Math.floor(share / maxItems);
    const items = Array.from(
      { length: maxItems },
      (_, index) => plainValue(itemSchema) ?? `${index}`.padEnd(size - name.length - 2, 'x'),
    );
    const others = plainParameters.filter(([other]) => other !== name);
    add(`many ${name}`, [...others, ...items.map((item) => [name, item] as const)]);
  }
  if ('filter' in properties) {
    for (const [filling, filter] of Object.entries(filters)) {
      add(`filter with ${filling}`, [...plainParameters, ['filter', JSON.stringify(filter)]]);
    }
  }
  return queries;
}

/**
 * Returns a filter with `count` different types of events in each of its lists. With the counts below, the filters fit
 * into a query.
 */
const filterOf = (pattern: string, count: number) => {
  const events = { types: Array.from({ length: count }, (_, index) => `${pattern}${index}`) };
  return { ...events, room: { timeline: events, state: events } };
};

const filters = {
  'many types': filterOf('a', 1_500),
  'many patterns': filterOf('*a', 1_500),
  'long patterns': filterOf('*a'.repeat(120), 60),
  'deep values': JSON.parse(`{"room":${'['.repeat(4_000)}${']'.repeat(4_000)}}`) as object,
};

function plainValue({ type, maximum = 1_000, anyOf, items, const: fixed }: Schema): string | undefined {
  if (fixed !== undefined) return String(fixed);
  if (anyOf?.[0]) return plainValue(anyOf[0]);
  if (items) return plainValue(items);
  if (type === 'integer' || type === 'number') return String(Math.min(maximum, 1_000));
  return type === 'boolean' ? 'true' : undefined;
}
