import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { PusherTables } from '../tables.ts';

/** An event about which a pusher has not notified its user yet. */
export interface PendingPush {
  readonly pusherId: number;
  readonly userId: string;
  readonly roomId: string;
  /** Position of the event on the stream of rooms. */
  readonly stream: number;
  /** Number of the event in the database. */
  readonly nid: number;
  /** When the event became pending, in milliseconds since the epoch. */
  readonly addedAt: number;
  /** Earliest time of the notification, in milliseconds since the epoch. */
  readonly dueAt: number;
}

function toPending(row: PusherTables['pending_pushes']): PendingPush {
  return {
    pusherId: row.pusher_id,
    userId: row.user_id,
    roomId: row.room_id,
    stream: row.stream,
    nid: row.nid,
    addedAt: row.added_at,
    dueAt: row.due_at,
  };
}

/** Returns the oldest pending events of a pusher, in the order of the stream. */
export async function readPending(
  reader: Reader<PusherTables>,
  pusherId: number,
  limit: number,
): Promise<PendingPush[]> {
  const rows = await reader
    .selectFrom('pending_pushes')
    .selectAll()
    .where('pusher_id', '=', pusherId)
    .orderBy('stream')
    .limit(limit)
    .execute();
  return rows.map(toPending);
}

/** Returns the oldest pending events of a pusher in one room, in the order of the stream. */
export async function readPendingOfRoom(
  reader: Reader<PusherTables>,
  { pusherId, roomId }: Pick<PendingPush, 'pusherId' | 'roomId'>,
  limit: number,
): Promise<PendingPush[]> {
  const rows = await reader
    .selectFrom('pending_pushes')
    .selectAll()
    .where('pusher_id', '=', pusherId)
    .where('room_id', '=', roomId)
    .orderBy('stream')
    .limit(limit)
    .execute();
  return rows.map(toPending);
}

/** Returns the ids of the pushers that send to push gateways and have pending events. */
export async function readHttpPushersWithPending(reader: Reader<PusherTables>): Promise<number[]> {
  const rows = await reader
    .selectFrom('pushers')
    .select('id')
    .where('kind', '=', 'http')
    .where('id', 'in', (where) => where.selectFrom('pending_pushes').select('pusher_id'))
    .execute();
  return rows.map(({ id }) => id);
}

/** Adds pending events; events that are already pending stay as they are. */
export async function addPending(
  writer: Writer<PusherTables>,
  pending: readonly PendingPush[],
): Promise<void> {
  if (pending.length === 0) return;
  const rows = pending.map((push) => ({
    pusher_id: push.pusherId,
    user_id: push.userId,
    room_id: push.roomId,
    stream: push.stream,
    nid: push.nid,
    added_at: push.addedAt,
    due_at: push.dueAt,
  }));
  await writer
    .insertInto('pending_pushes')
    .values(rows)
    .onConflict((conflict) => conflict.columns(['pusher_id', 'stream']).doNothing())
    .execute();
}

/** Deletes pending events of a pusher up to a position. @returns the number of deleted events */
export async function deletePending(
  writer: Writer<PusherTables>,
  pusherId: number,
  upTo: number,
): Promise<number> {
  const { numDeletedRows } = await writer
    .deleteFrom('pending_pushes')
    .where('pusher_id', '=', pusherId)
    .where('stream', '<=', upTo)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Deletes pending events of a pusher in one room up to a position. */
export async function deletePendingOfRoom(
  writer: Writer<PusherTables>,
  { pusherId, roomId }: Pick<PendingPush, 'pusherId' | 'roomId'>,
  upTo: number,
): Promise<void> {
  await writer
    .deleteFrom('pending_pushes')
    .where('pusher_id', '=', pusherId)
    .where('room_id', '=', roomId)
    .where('stream', '<=', upTo)
    .execute();
}

/**
 * Deletes the pending events of a pusher that became pending before a time, and all but the newest `max` events.
 * @param before milliseconds since the epoch
 * @returns the number of deleted events
 */
export async function trimPending(
  writer: Writer<PusherTables>,
  pusherId: number,
  { max, before }: { max: number; before: number },
): Promise<number> {
  const excess = await writer
    .selectFrom('pending_pushes')
    .select('stream')
    .where('pusher_id', '=', pusherId)
    .orderBy('stream', 'desc')
    .offset(max)
    .limit(1)
    .executeTakeFirst();
  const { numDeletedRows } = await writer
    .deleteFrom('pending_pushes')
    .where('pusher_id', '=', pusherId)
    .where((where) => where.or([where('stream', '<=', excess?.stream ?? -1), where('added_at', '<', before)]))
    .executeTakeFirst();
  return Number(numDeletedRows);
}
