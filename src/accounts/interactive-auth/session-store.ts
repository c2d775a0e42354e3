import type { Insertable, Selectable } from 'kysely';
import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { AccountTables } from '../tables.ts';

/** A stored session of interactive authentication. */
export type SessionRow = Selectable<AccountTables['interactive_sessions']>;

/** Returns a session, even when it has expired. */
export async function findInteractiveSession(
  reader: Reader<AccountTables>,
  idHash: string,
): Promise<SessionRow | undefined> {
  return await reader
    .selectFrom('interactive_sessions')
    .selectAll()
    .where('id_hash', '=', idHash)
    .executeTakeFirst();
}

/** Inserts or replaces a session. */
export async function saveInteractiveSession(
  writer: Writer<AccountTables>,
  row: Insertable<AccountTables['interactive_sessions']>,
): Promise<void> {
  const { id_hash, ...otherColumns } = row;
  await writer
    .insertInto('interactive_sessions')
    .values(row)
    .onConflict((conflict) => conflict.column('id_hash').doUpdateSet(otherColumns))
    .execute();
}

/** Replaces the parameters of a session by the result of its operation. */
export async function answerInteractiveSession(
  writer: Writer<AccountTables>,
  idHash: string,
  sealedResult: Uint8Array,
): Promise<void> {
  await writer
    .updateTable('interactive_sessions')
    .set({ sealed_body: sealedResult, answered: 1, registration_token: null })
    .where('id_hash', '=', idHash)
    .execute();
}

/** Deletes the sessions that were created before a time. @param before milliseconds since the epoch */
export async function deleteInteractiveSessionsBefore(
  writer: Writer<AccountTables>,
  before: number,
): Promise<void> {
  await writer.deleteFrom('interactive_sessions').where('created_at', '<', before).execute();
}

/** Deletes the sessions of a user. */
export async function deleteInteractiveSessionsOf(
  writer: Writer<AccountTables>,
  userId: string,
): Promise<void> {
  await writer.deleteFrom('interactive_sessions').where('user_id', '=', userId).execute();
}

/** Deletes the sessions with these hashes of their ids. */
export async function deleteInteractiveSessions(
  writer: Writer<AccountTables>,
  idHashes: readonly string[],
): Promise<void> {
  await writer.deleteFrom('interactive_sessions').where('id_hash', 'in', idHashes).execute();
}

/**
 * Deletes the oldest sessions of registrations and keeps the `maxKept` newest. Keeps fewer when several sessions were
 * created in the same millisecond.
 */
export async function deleteOldestRegistrations(
  writer: Writer<AccountTables>,
  maxKept: number,
): Promise<void> {
  const newestDeleted = await writer
    .selectFrom('interactive_sessions')
    .select('created_at')
    .where('user_id', 'is', null)
    .orderBy('created_at', 'desc')
    .limit(1)
    .offset(maxKept)
    .executeTakeFirst();
  if (!newestDeleted) return;
  await writer
    .deleteFrom('interactive_sessions')
    .where('user_id', 'is', null)
    .where('created_at', '<=', newestDeleted.created_at)
    .execute();
}
