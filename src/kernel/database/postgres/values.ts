import { types } from 'pg';

/** PostgreSQL's object ids of the types whose values are converted in another way than by the driver. */
const oids = { bool: 16, bytea: 17, int8: 20, numeric: 1700 };

/** Parsers of values by object id of the type. They return the same form as SQLite. */
const parsers = new Map<number, (text: string) => unknown>([
  [oids.bool, (text) => (text === 't' ? 1 : 0)],
  [oids.bytea, bytes],
  [oids.int8, safeInteger],
  // Sums and averages of bigints.
  [oids.numeric, Number],
]);

/** Parsers for the `types` setting of connections. */
export const portableTypes: typeof types = {
  ...types,
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    (format !== 'binary' && parsers.get(oid)) ||
    types.getTypeParser(oid, format)) as typeof types.getTypeParser,
};

/** Converts a parameter for the driver. */
export function bindable(value: unknown): string | number | bigint | Buffer | null {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' || value === null) {
    return value;
  }
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  throw new TypeError(`cannot bind a ${typeof value}`);
}

function bytes(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text.slice(2), 'hex'));
}

function safeInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is too large for a number`);
  return value;
}
