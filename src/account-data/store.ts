import { sql } from 'kysely';
import type { Reader, Writer } from '../kernel/database/index.ts';
import type { JsonObject } from '../protocol/index.ts';
import type { AccountDataTables } from './tables.ts';

/** Identifies one piece of account data. */
export interface AccountDataKey {
  readonly userId: string;
  /** `undefined` for global account data. */
  readonly roomId: string | undefined;
  readonly type: string;
}

/** A piece of account data. */
export interface AccountDataEntry {
  readonly roomId: string | undefined;
  readonly type: string;
  readonly content: JsonObject;
  /** Stream position of the last change. */
  readonly position: number;
}

const columns = ['room_id', 'type', 'content', 'position'] as const;

/** Maximum number of types in one query. */
const typesPerQuery = 500;

type Row = Pick<AccountDataTables['account_data'], (typeof columns)[number]>;

const toEntry = (row: Row): AccountDataEntry => ({
  roomId: row.room_id === '' ? undefined : row.room_id,
  type: row.type,
  content: JSON.parse(row.content) as JsonObject,
  position: row.position,
});

/** Bytes of content that are parsed before other requests are processed. */
const bytesPerTurn = 512 * 1024;

/** Parses rows, with pauses: all account data of a user may have several MiB. */
async function toEntries(rows: readonly Row[]): Promise<AccountDataEntry[]> {
  const entries: AccountDataEntry[] = [];
  let bytes = 0;
  for (const row of rows) {
    bytes += row.content.length;
    if (bytes > bytesPerTurn) {
      bytes = 0;
      await new Promise(setImmediate);
    }
    entries.push(toEntry(row));
  }
  return entries;
}

/** Returns a piece of account data; `{}` is the content of a deleted piece. */
export async function readEntry(
  reader: Reader<AccountDataTables>,
  { userId, roomId = '', type }: AccountDataKey,
): Promise<AccountDataEntry | undefined> {
  const row = await reader
    .selectFrom('account_data')
    .select(columns)
    .where('user_id', '=', userId)
    .where('room_id', '=', roomId)
    .where('type', '=', type)
    .executeTakeFirst();
  return row && toEntry(row);
}

/** Returns which of `types` have global account data of the user that is not empty. */
export async function readGlobalTypes(
  reader: Reader<AccountDataTables>,
  userId: string,
  types: readonly string[],
): Promise<string[]> {
  const typesWithContent: string[] = [];
  for (let start = 0; start < types.length; start += typesPerQuery) {
    const rows = await reader
      .selectFrom('account_data')
      .select('type')
      .where('user_id', '=', userId)
      .where('room_id', '=', '')
      .where('type', 'in', types.slice(start, start + typesPerQuery))
      .where('content', '<>', '{}')
      .execute();
    typesWithContent.push(...rows.map(({ type }) => type));
  }
  return typesWithContent;
}

/** Returns the account data of a user, except empty pieces. @param types absent: all types */
export async function readEntries(
  reader: Reader<AccountDataTables>,
  userId: string,
  types?: readonly string[],
): Promise<AccountDataEntry[]> {
  const query = reader
    .selectFrom('account_data')
    .select(columns)
    .where('user_id', '=', userId)
    .where('content', '<>', '{}')
    .orderBy('room_id')
    .orderBy('type');
  return toEntries(await (types ? query.where('type', 'in', types) : query).execute());
}

/** Returns account data whose last change has a position in `(after, upTo]`, in the order of the positions. */
export async function readChanges(
  reader: Reader<AccountDataTables>,
  userId: string,
  after: number,
  upTo: number,
): Promise<AccountDataEntry[]> {
  const rows = await reader
    .selectFrom('account_data')
    .select(columns)
    .where('user_id', '=', userId)
    .where('position', '>', after)
    .where('position', '<=', upTo)
    .orderBy('position')
    .execute();
  return toEntries(rows);
}

/** Bytes that each piece of account data counts besides content, type and room id: a row needs space of its own. */
const pieceOverhead = 50;

/** Returns how many bytes a piece of account data counts. */
export const bytesOfPiece = ({ roomId = '', type }: AccountDataKey, content: JsonObject): number =>
  pieceOverhead + Buffer.byteLength(roomId) + Buffer.byteLength(type) + bytesOf(content);

/** Returns the bytes of content as it is stored. */
export const bytesOf = (content: JsonObject): number => Buffer.byteLength(JSON.stringify(content));

/** Bytes of stored account data, counted as by `bytesOfPiece`. */
export interface StoredBytes {
  /** Bytes of all account data of the user, including deleted pieces. */
  readonly total: number;
  /** Bytes of one piece of account data; 0 when it is not stored. */
  readonly ofPiece: number;
}

/** Counts the bytes of one piece of account data, and of all account data of the same user. */
export async function readStoredBytes(
  reader: Reader<AccountDataTables>,
  { userId, roomId = '', type }: AccountDataKey,
): Promise<StoredBytes> {
  const bytes = sql<number>`${sql.lit(pieceOverhead)} + octet_length(room_id) + octet_length(type) + octet_length(content)`;
  const isPiece = sql`room_id = ${roomId} and type = ${type}`;
  const row = await reader
    .selectFrom('account_data')
    .select([
      sql<number | string>`coalesce(sum(${bytes}), 0)`.as('total'),
      sql<number | string>`coalesce(sum(case when ${isPiece} then ${bytes} else 0 end), 0)`.as('of_piece'),
    ])
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow();
  return { total: Number(row.total), ofPiece: Number(row.of_piece) };
}

export async function writeEntry(
  writer: Writer<AccountDataTables>,
  { userId, roomId = '', type }: AccountDataKey,
  content: JsonObject,
  position: number,
): Promise<void> {
  const value = { content: JSON.stringify(content), position };
  await writer
    .insertInto('account_data')
    .values({ user_id: userId, room_id: roomId, type, ...value })
    .onConflict((conflict) => conflict.columns(['user_id', 'room_id', 'type']).doUpdateSet(value))
    .execute();
}

/**
 * Stores `entry` if the stored account data is still `old` (`undefined`: if none is stored).
 * @returns whether `entry` was stored
 */
export async function replaceEntry(
  writer: Writer<AccountDataTables>,
  { userId, roomId = '', type }: AccountDataKey,
  old: AccountDataEntry | undefined,
  entry: Pick<AccountDataEntry, 'content' | 'position'>,
): Promise<boolean> {
  const value = { content: JSON.stringify(entry.content), position: entry.position };
  if (old === undefined) {
    const inserted = await writer
      .insertInto('account_data')
      .values({ user_id: userId, room_id: roomId, type, ...value })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst();
    return (inserted.numInsertedOrUpdatedRows ?? 0n) > 0n;
  }
  const updated = await writer
    .updateTable('account_data')
    .set(value)
    .where('user_id', '=', userId)
    .where('room_id', '=', roomId)
    .where('type', '=', type)
    .where('position', '=', old.position)
    .executeTakeFirst();
  return updated.numUpdatedRows > 0n;
}
