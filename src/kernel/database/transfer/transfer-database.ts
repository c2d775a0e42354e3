import { CompiledQuery } from 'kysely';
import type { Database, DatabaseKind } from '../database.ts';
import type { Row } from '../queries.ts';
import type { SqlValue } from '../statement.ts';

/**
 * The source or the target of a transfer: an open database with its kind. Schemas are read and digests are computed
 * differently on each kind.
 */
export interface TransferDatabase {
  readonly kind: DatabaseKind;
  readonly database: Database;
}

/** Runs a statement that only reads, with `?` placeholders, without blocking this thread. */
export async function query(
  { database }: TransferDatabase,
  text: string,
  parameters: readonly SqlValue[] = [],
): Promise<Row[]> {
  const { rows } = await database.scanner().executeQuery<Row>(CompiledQuery.raw(text, [...parameters]));
  return rows;
}

/** Quotes the name of a table or a column. */
export const quoted = (name: string): string => `"${name}"`;
