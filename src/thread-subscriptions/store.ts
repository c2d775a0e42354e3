import type { Reader, Writer } from '../kernel/database/index.ts';
import type { ThreadSubscriptionTables as Tables } from './tables.ts';
import type { ThreadEntry, ThreadKey, ThreadState } from './thread.ts';

const columns = ['room_id', 'root_id', 'state', 'position'] as const;

const toEntry = (row: Pick<Tables['thread_subscriptions'], (typeof columns)[number]>): ThreadEntry => ({
  roomId: row.room_id,
  rootId: row.root_id,
  state: row.state as ThreadState,
  position: row.position,
});

/** Reads the subscription of a user to a thread; `undefined` when there has never been one. */
export async function readThread(
  reader: Reader<Tables>,
  { userId, roomId, rootId }: ThreadKey,
): Promise<ThreadEntry | undefined> {
  const row = await reader
    .selectFrom('thread_subscriptions')
    .select(columns)
    .where('user_id', '=', userId)
    .where('room_id', '=', roomId)
    .where('root_id', '=', rootId)
    .executeTakeFirst();
  return row && toEntry(row);
}

/** Reads the subscriptions whose last change has a position in `(after, upTo]`, newest first. */
export async function readChangedThreads(
  reader: Reader<Tables>,
  userId: string,
  { after, upTo, limit }: { after: number; upTo: number; limit: number },
): Promise<ThreadEntry[]> {
  const rows = await reader
    .selectFrom('thread_subscriptions')
    .select(columns)
    .where('user_id', '=', userId)
    .where('position', '>', after)
    .where('position', '<=', upTo)
    .orderBy('position', 'desc')
    .limit(limit)
    .execute();
  return rows.map(toEntry);
}

/**
 * Reads the threads that a user follows; when there are more than `limit`, those whose subscriptions changed
 * last.
 */
export async function readFollowedThreads(
  reader: Reader<Tables>,
  userId: string,
  limit: number,
): Promise<ThreadEntry[]> {
  const rows = await reader
    .selectFrom('thread_subscriptions')
    .select(columns)
    .where('user_id', '=', userId)
    .where('state', '!=', 'none')
    .orderBy('position', 'desc')
    .limit(limit)
    .execute();
  return rows.map(toEntry);
}

/**
 * Replaces a subscription.
 * @param old the stored subscription; `undefined` when there is none
 * @returns false, without a change, when another writer has replaced `old` since it was read
 */
export async function replaceThread(
  writer: Writer<Tables>,
  { userId, roomId, rootId }: ThreadKey,
  old: ThreadEntry | undefined,
  value: { state: ThreadState; position: number },
): Promise<boolean> {
  if (old === undefined) {
    const inserted = await writer
      .insertInto('thread_subscriptions')
      .values({ user_id: userId, room_id: roomId, root_id: rootId, ...value })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst();
    return (inserted.numInsertedOrUpdatedRows ?? 0n) > 0n;
  }
  const updated = await writer
    .updateTable('thread_subscriptions')
    .set(value)
    .where('user_id', '=', userId)
    .where('room_id', '=', roomId)
    .where('root_id', '=', rootId)
    .where('position', '=', old.position)
    .executeTakeFirst();
  return updated.numUpdatedRows > 0n;
}
