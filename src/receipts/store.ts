import type { Reader, Writer } from '../kernel/database/index.ts';
import { MAIN_TIMELINE } from '../protocol/index.ts';
import type { PlacedReceipt, Receipt, ReceiptType } from './receipt.ts';
import type { ReceiptTables } from './tables.ts';

/** Maximum number of receipts that `deleteOldestThreads` deletes at once. */
const maxDeleted = 1_000;

/**
 * Reads the stored receipt with the room, user, type and thread of the given receipt; `undefined` when there is none.
 */
export async function readReceipt(
  reader: Reader<ReceiptTables>,
  { roomId, userId, type, threadId }: Receipt,
): Promise<PlacedReceipt | undefined> {
  const row = await reader
    .selectFrom('receipts')
    .selectAll()
    .where('room_id', '=', roomId)
    .where('user_id', '=', userId)
    .where('type', '=', type)
    .where('thread_id', '=', threadId ?? '')
    .executeTakeFirst();
  return row && toReceipt(row);
}

/**
 * Writes a receipt unless the stored receipt is for the same or a later event; a receipt for an unknown event replaces
 * any other receipt.
 * @returns whether it was written
 */
export async function writeReceipt(writer: Writer<ReceiptTables>, receipt: PlacedReceipt): Promise<boolean> {
  const { roomId, userId, type, threadId, eventId, stream, ts, position } = receipt;
  const content = { event_id: eventId, event_stream: stream ?? null, ts, position };
  const result = await writer
    .insertInto('receipts')
    .values({ room_id: roomId, user_id: userId, type, thread_id: threadId ?? '', ...content })
    .onConflict((conflict) => {
      const update = conflict.columns(['room_id', 'user_id', 'type', 'thread_id']).doUpdateSet(content);
      if (stream === undefined) return update;
      return update.where((where) =>
        where.or([where('receipts.event_stream', 'is', null), where('receipts.event_stream', '<', stream)]),
      );
    })
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/**
 * Deletes receipts of a type that a user has for threads of a room, except for the newest `max` ones; at most
 * `maxDeleted` at once. Receipts for the whole room and for the main timeline stay.
 */
export async function deleteOldestThreads(
  writer: Writer<ReceiptTables>,
  { roomId, userId, type }: Pick<Receipt, 'roomId' | 'userId' | 'type'>,
  max: number,
): Promise<void> {
  const surplus = await writer
    .selectFrom('receipts')
    .select('thread_id')
    .where('room_id', '=', roomId)
    .where('user_id', '=', userId)
    .where('type', '=', type)
    .where('thread_id', 'not in', ['', MAIN_TIMELINE])
    .orderBy('position', 'desc')
    .offset(max)
    .limit(maxDeleted)
    .execute();
  if (surplus.length === 0) return;
  await writer
    .deleteFrom('receipts')
    .where('room_id', '=', roomId)
    .where('user_id', '=', userId)
    .where('type', '=', type)
    .where(
      'thread_id',
      'in',
      surplus.map(({ thread_id }) => thread_id),
    )
    .execute();
}

/**
 * Reads the newest `limit` receipts of a room that were stored in `(after, upTo]`, newest first, without private
 * receipts of other users.
 */
export async function readReceipts(
  reader: Reader<ReceiptTables>,
  roomId: string,
  viewer: string,
  { after, upTo, limit }: { after: number; upTo: number; limit: number },
): Promise<PlacedReceipt[]> {
  const rows = await reader
    .selectFrom('receipts')
    .selectAll()
    .where('room_id', '=', roomId)
    .where('position', '>', after)
    .where('position', '<=', upTo)
    .where((where) => where.or([where('type', '=', 'm.read'), where('user_id', '=', viewer)]))
    .orderBy('position', 'desc')
    .limit(limit)
    .execute();
  return rows.map(toReceipt);
}

/**
 * Counts the receipts of rooms, private receipts of other users included; rooms without receipts are absent.
 */
export async function countReceipts(
  reader: Reader<ReceiptTables>,
  roomIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await reader
    .selectFrom('receipts')
    .select(['room_id', ({ fn }) => fn.countAll<number>().as('count')])
    .where('room_id', 'in', roomIds)
    .groupBy('room_id')
    .execute();
  return new Map(rows.map((row) => [row.room_id, Number(row.count)]));
}

/** Reads all receipts of some rooms, newest first, without private receipts of other users. */
export async function readReceiptsInRooms(
  reader: Reader<ReceiptTables>,
  roomIds: readonly string[],
  viewer: string,
): Promise<PlacedReceipt[]> {
  const rows = await reader
    .selectFrom('receipts')
    .selectAll()
    .where('room_id', 'in', roomIds)
    .where((where) => where.or([where('type', '=', 'm.read'), where('user_id', '=', viewer)]))
    .orderBy('position', 'desc')
    .execute();
  return rows.map(toReceipt);
}

/** Reads all receipts of one user in some rooms. */
export async function readReceiptsOfUser(
  reader: Reader<ReceiptTables>,
  roomIds: readonly string[],
  userId: string,
): Promise<PlacedReceipt[]> {
  const rows = await reader
    .selectFrom('receipts')
    .selectAll()
    .where('room_id', 'in', roomIds)
    .where('user_id', '=', userId)
    .execute();
  return rows.map(toReceipt);
}

function toReceipt(row: ReceiptTables['receipts']): PlacedReceipt {
  return {
    roomId: row.room_id,
    userId: row.user_id,
    type: row.type as ReceiptType,
    threadId: row.thread_id || undefined,
    eventId: row.event_id,
    stream: row.event_stream ?? undefined,
    ts: row.ts,
    position: row.position,
  };
}
