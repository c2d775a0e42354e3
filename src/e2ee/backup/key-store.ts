import { type SqlBool, sql } from 'kysely';
import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { E2eeTables } from '../tables.ts';
import type { SessionKey } from './room-keys.ts';

/** Identifies a backup. */
export interface BackupId {
  readonly userId: string;
  readonly version: number;
}

/** Selects keys of a backup: all keys, the keys of one room, or the key of one session. */
export interface KeyRange {
  readonly roomId?: string;
  readonly sessionId?: string;
}

/** Maximum number of keys in one statement, with eight values each. */
const chunkSize = 500;

/** Returns the keys of the given sessions that are in the backup. */
export async function findKeys(
  reader: Reader<E2eeTables>,
  backup: BackupId,
  sessions: readonly Pick<SessionKey, 'roomId' | 'sessionId'>[],
): Promise<SessionKey[]> {
  const keys: SessionKey[] = [];
  for (let start = 0; start < sessions.length; start += chunkSize) {
    const names = sessions
      .slice(start, start + chunkSize)
      .map(({ roomId, sessionId }) => sql`(${roomId}, ${sessionId})`);
    const rows = await selectBackupKeys(reader, backup)
      .where(sql<SqlBool>`(room_id, session_id) in (values ${sql.join(names)})`)
      .execute();
    keys.push(...rows.map(toKey));
  }
  return keys;
}

/**
 * Returns a page of the keys of a backup, in the order of room and session.
 * @param after the last key of the previous page
 */
export async function readKeys(
  reader: Reader<E2eeTables>,
  backup: BackupId,
  { roomId, sessionId }: KeyRange,
  { after, limit }: { after: SessionKey | undefined; limit: number },
): Promise<SessionKey[]> {
  let query = selectBackupKeys(reader, backup).orderBy('room_id').orderBy('session_id').limit(limit);
  if (roomId !== undefined) query = query.where('room_id', '=', roomId);
  if (sessionId !== undefined) query = query.where('session_id', '=', sessionId);
  if (after) {
    query = query.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('room_id', 'session_id'), '>', tuple(after.roomId, after.sessionId)),
    );
  }
  return (await query.execute()).map(toKey);
}

/** Inserts or replaces keys of a backup. */
export async function writeKeys(
  writer: Writer<E2eeTables>,
  { userId, version }: BackupId,
  keys: readonly SessionKey[],
): Promise<void> {
  for (let start = 0; start < keys.length; start += chunkSize) {
    const rows = keys.slice(start, start + chunkSize).map((key) => ({
      user_id: userId,
      version,
      room_id: key.roomId,
      session_id: key.sessionId,
      first_message_index: key.firstMessageIndex,
      forwarded_count: key.forwardedCount,
      is_verified: key.isVerified ? 1 : 0,
      session_data: key.sessionData,
    }));
    await writer
      .insertInto('room_keys')
      .values(rows)
      .onConflict((conflict) =>
        conflict.columns(['user_id', 'version', 'room_id', 'session_id']).doUpdateSet(({ ref }) => ({
          first_message_index: ref('excluded.first_message_index'),
          forwarded_count: ref('excluded.forwarded_count'),
          is_verified: ref('excluded.is_verified'),
          session_data: ref('excluded.session_data'),
        })),
      )
      .execute();
  }
}

/** @returns the number of deleted keys */
export async function deleteKeys(
  writer: Writer<E2eeTables>,
  { userId, version }: BackupId,
  { roomId, sessionId }: KeyRange,
): Promise<number> {
  let query = writer.deleteFrom('room_keys').where('user_id', '=', userId).where('version', '=', version);
  if (roomId !== undefined) query = query.where('room_id', '=', roomId);
  if (sessionId !== undefined) query = query.where('session_id', '=', sessionId);
  return Number((await query.executeTakeFirst()).numDeletedRows);
}

const selectBackupKeys = (reader: Reader<E2eeTables>, { userId, version }: BackupId) =>
  reader.selectFrom('room_keys').selectAll().where('user_id', '=', userId).where('version', '=', version);

const toKey = (row: E2eeTables['room_keys']): SessionKey => ({
  roomId: row.room_id,
  sessionId: row.session_id,
  firstMessageIndex: row.first_message_index,
  forwardedCount: row.forwarded_count,
  isVerified: row.is_verified !== 0,
  sessionData: row.session_data,
});
