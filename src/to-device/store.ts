import type { Reader, Writer } from '../kernel/database/index.ts';
import type { ToDeviceTables } from './tables.ts';

/** A message in the queue of one device. */
export interface StoredMessage {
  readonly userId: string;
  readonly deviceId: string;
  readonly position: number;
  /** `{sender, type, content}` as JSON. */
  readonly message: string;
}

/** Rows to a statement: four values each, far below what a statement may bind. */
const rowsAtOnce = 2_000;

export async function insertMessages(
  writer: Writer<ToDeviceTables>,
  messages: readonly StoredMessage[],
): Promise<void> {
  for (let start = 0; start < messages.length; start += rowsAtOnce) {
    const rows = messages.slice(start, start + rowsAtOnce).map(({ userId, deviceId, position, message }) => ({
      user_id: userId,
      device_id: deviceId,
      position,
      message,
    }));
    await writer.insertInto('to_device_messages').values(rows).execute();
  }
}

/** The oldest messages of a device in `(after, upTo]`. */
export async function readMessages(
  reader: Reader<ToDeviceTables>,
  userId: string,
  deviceId: string,
  { after, upTo, limit }: { after: number; upTo: number; limit: number },
): Promise<{ position: number; message: string }[]> {
  return reader
    .selectFrom('to_device_messages')
    .select(['position', 'message'])
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .where('position', '>', after)
    .where('position', '<=', upTo)
    .orderBy('position')
    .limit(limit)
    .execute();
}

/** Where the oldest message of a device is; `undefined` when it has none. */
export async function oldestPosition(
  reader: Reader<ToDeviceTables>,
  userId: string,
  deviceId: string,
): Promise<number | undefined> {
  const row = await reader
    .selectFrom('to_device_messages')
    .select('position')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .orderBy('position')
    .limit(1)
    .executeTakeFirst();
  return row?.position;
}

export async function deleteUpTo(
  writer: Writer<ToDeviceTables>,
  userId: string,
  deviceId: string,
  position: number,
): Promise<void> {
  await writer
    .deleteFrom('to_device_messages')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .where('position', '<=', position)
    .execute();
}

/** Deletes the oldest messages of a device, so that the newest `kept` stay. */
export async function deleteAllButNewest(
  writer: Writer<ToDeviceTables>,
  userId: string,
  deviceId: string,
  kept: number,
): Promise<void> {
  const firstTooMany = await writer
    .selectFrom('to_device_messages')
    .select('position')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .orderBy('position', 'desc')
    .limit(1)
    .offset(kept)
    .executeTakeFirst();
  if (firstTooMany) await deleteUpTo(writer, userId, deviceId, firstTooMany.position);
}

/** Deletes the queues of devices and what they have sent. */
export async function deleteDevices(
  writer: Writer<ToDeviceTables>,
  userId: string,
  deviceIds: readonly string[],
): Promise<void> {
  await writer
    .deleteFrom('to_device_messages')
    .where('user_id', '=', userId)
    .where('device_id', 'in', deviceIds)
    .execute();
  await writer
    .deleteFrom('to_device_transactions')
    .where('origin', '=', userId)
    .where('device_id', 'in', deviceIds)
    .execute();
}

/** Names something that was sent. */
export interface SentTransaction {
  readonly origin: string;
  readonly deviceId: string;
  readonly digest: string;
}

/** @returns whether it was not sent before */
export async function insertTransaction(
  writer: Writer<ToDeviceTables>,
  { origin, deviceId, digest }: SentTransaction,
  sentAt: number,
): Promise<boolean> {
  const result = await writer
    .insertInto('to_device_transactions')
    .values({ origin, device_id: deviceId, digest, sent_at: sentAt })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

export async function deleteTransactionsBefore(
  writer: Writer<ToDeviceTables>,
  sentBefore: number,
): Promise<void> {
  await writer.deleteFrom('to_device_transactions').where('sent_at', '<', sentBefore).execute();
}

/** Forgets what a server has sent but for the newest. */
export async function deleteAllButNewestTransactions(
  writer: Writer<ToDeviceTables>,
  origin: string,
  kept: number,
): Promise<void> {
  const firstTooMany = await writer
    .selectFrom('to_device_transactions')
    .select('sent_at')
    .where('origin', '=', origin)
    .orderBy('sent_at', 'desc')
    .limit(1)
    .offset(kept)
    .executeTakeFirst();
  if (!firstTooMany) return;
  await writer
    .deleteFrom('to_device_transactions')
    .where('origin', '=', origin)
    .where('sent_at', '<', firstTooMany.sent_at)
    .execute();
}
