import type { RouteContract } from '../../src/kernel/http/routing/route.ts';

/** The parts of a JSON Schema of query parameters from which values are made. */
interface Schema {
  readonly type?: string;
  readonly const?: unknown;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
}

/** Maximum characters of a query: the head of a request has at most 64 KiB. */
const maxCharacters = 56_000;

/**
 * Returns the largest queries that a route may receive, by a description of what fills them; an empty map for a route
 * without parameters.
 */
export function largestQueries({ query }: RouteContract): ReadonlyMap<string, string> {
  const { properties = {} } = (query ?? {}) as Schema;
  const names = Object.entries(properties);
  const queries = new Map<string, string>();
  const texts = names.filter(([, { type }]) => type === 'string');
  const lists = names.filter(([, { type }]) => type === 'array');
  const share = Math.floor(maxCharacters / Math.max(1, texts.length + lists.length));
  const textOf = ({ maxLength = maxCharacters }: Schema) => 'x'.repeat(Math.min(maxLength, share - 100));
  const plainParameters = names.flatMap(([name, schema]) => {
    // A request that waits would only take longer: its CPU time stays the same.
    const value = name.startsWith('timeout') ? '0' : plainValue(schema);
    return value === undefined ? [] : [[name, value] as const];
  });
  const add = (filling: string, values: readonly (readonly [string, string])[]) => {
    if (values.length > 0) queries.set(filling, String(new URLSearchParams(values.map(([...pair]) => pair))));
  };
  add('numbers', plainParameters);
  for (const [name, schema] of texts) add(`long ${name}`, [...plainParameters, [name, textOf(schema)]]);
  for (const [name, { maxItems = 1_000 }] of lists) {
    const size = Math.floor(share / maxItems);
    const items = Array.from({ length: maxItems }, (_, index) =>
      `${index}`.padEnd(size - name.length - 2, 'x'),
    );
    add(`many ${name}`, [...plainParameters, ...items.map((item) => [name, item] as const)]);
  }
  if ('filter' in properties) {
    for (const [filling, filter] of Object.entries(filters)) {
      add(`filter with ${filling}`, [...plainParameters, ['filter', JSON.stringify(filter)]]);
    }
  }
  return queries;
}

/** Returns a filter with `count` different types of events in each of its lists. The counts below fit into a query. */
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

function plainValue({ type, maximum = 1_000, anyOf, const: fixed }: Schema): string | undefined {
  if (fixed !== undefined) return String(fixed);
  if (anyOf?.[0]) return plainValue(anyOf[0]);
  if (type === 'integer' || type === 'number') return String(Math.min(maximum, 1_000));
  return type === 'boolean' ? 'true' : undefined;
}
