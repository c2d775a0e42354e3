import { hash } from 'node:crypto';
import type { Row } from '../queries.ts';
import type { SqlValue } from '../statement.ts';
import type { TableShape } from './table-shape.ts';
import { quoted } from './transfer-database.ts';

/** Hexadecimal digits of each half of a row's hash that are added up: 60 bits, which fit into a bigint of PostgreSQL. */
const digits = 15;

/**
 * The number of rows and the sums of their hashes. Equal rows have equal digests, independently of the order in which
 * they were read. PostgreSQL computes the same digests with `digestSql`.
 */
export interface Digest {
  readonly rows: number;
  readonly low: bigint;
  readonly high: bigint;
}

export const emptyDigest: Digest = { rows: 0, low: 0n, high: 0n };

/** Adds two digests: returns the digest of the rows of both. */
export const sumOf = (one: Digest, other: Digest): Digest => ({
  rows: one.rows + other.rows,
  low: one.low + other.low,
  high: one.high + other.high,
});

export const areEqual = (one: Digest, other: Digest): boolean =>
  one.rows === other.rows && one.low === other.low && one.high === other.high;

/** Cuts a sum off to as many bits as `digits` hexadecimal digits have. */
const mask = (1n << BigInt(4 * digits)) - 1n;

/** Returns the hash of a table as 30 hexadecimal digits, for output. */
export const hashOf = ({ low, high }: Digest): string =>
  [low, high].map((sum) => (sum & mask).toString(16).padStart(digits, '0')).join('');

/** Computes the digest of rows that were read. */
export function digestOf({ columns }: TableShape, rows: readonly Row[]): Digest {
  let low = 0n;
  let high = 0n;
  for (const row of rows) {
    let text = '';
    for (const { name } of columns) text += textOf(row[name] as SqlValue);
    const hashed = hash('md5', text);
    low += BigInt(`0x${hashed.slice(0, digits)}`);
    high += BigInt(`0x${hashed.slice(digits, 2 * digits)}`);
  }
  return { rows: rows.length, low, high };
}

/** Returns a value with its length in bytes as a prefix, so that different rows have different texts. */
function textOf(value: SqlValue): string {
  if (value === null) return '~';
  const text = value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value);
  return `${Buffer.byteLength(text)}:${text}`;
}

/** Returns the columns of a query on PostgreSQL that computes the digest of its rows. */
export function digestSql({ columns }: TableShape): string {
  const text = columns
    .map(({ name, isBytes }) => {
      const value = isBytes ? `encode(${quoted(name)}, 'hex')` : `${quoted(name)}::text`;
      return `coalesce(octet_length(${value}) || ':' || ${value}, '~')`;
    })
    .join(' || ');
  const part = (from: number) =>
    `coalesce(sum(('x' || substr(md5(${text}), ${from}, ${digits}))::bit(60)::bigint), 0)::text`;
  return `count(*) as rows, ${part(1)} as low, ${part(digits + 1)} as high`;
}

/** Reads the digest from the row that a query with `digestSql` returns. */
export const digestFrom = ({ rows, low, high }: Row): Digest => ({
  rows: Number(rows),
  low: BigInt(String(low)),
  high: BigInt(String(high)),
});
