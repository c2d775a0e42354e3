import type { Reader, Writer } from '../kernel/database/index.ts';
import type { ToDeviceTables } from './tables.ts';

/** A message in the queue of a device. */
export interface StoredMessage {
  readonly userId: string;
  readonly deviceId: string;
  readonly position: number;
  /** `{sender, type, content}` as JSON. */
  readonly message: string;
}

/** Maximum number of rows in one statement. Their 8,000 values are far fewer than a statement can bind. */
const rowsPerStatement = 2_000;

/** Adds messages to the queues of their devices. */
export async function insertMessages(
  writer: Writer<ToDeviceTables>,
  messages: readonly StoredMessage[],
): Promise<void> {
  for (let start = 0; start < messages.length; start += rowsPerStatement) {
    const rows = messages
      .slice(start, start + rowsPerStatement)
      .map(({ userId, deviceId, position, message }) => ({
        user_id: userId,
        device_id: deviceId,
        position,
        message,
      }));
    await writer.insertInto('to_device_messages').values(rows).execute();
  }
}

/** Returns the oldest messages of a device at the positions in `(after, upTo]`. */
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

/** Returns the devices of all messages at the positions in `(after, upTo]`. */
export async function readAddresses(
  reader: Reader<ToDeviceTables>,
  after: number,
  upTo: number,
): Promise<{ userId: string; deviceId: string; position: number }[]> {
  return reader
    .selectFrom('to_device_messages')
    .select(['user_id as userId', 'device_id as deviceId', 'position'])
    .where('position', '>', after)
    .where('position', '<=', upTo)
    .orderBy('position')
    .execute();
}

/** Returns the position of the oldest message of a device; `undefined` without messages. */
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

/** Deletes the to-device messages of a device up to a position. */
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

/** Deletes the oldest messages of a device beyond a limit. */
export async function deleteAllButNewest(
  writer: Writer<ToDeviceTables>,
  userId: string,
  deviceId: string,
  limit: number,
): Promise<void> {
  const newestExcess = await writer
    .selectFrom('to_device_messages')
    .select('position')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .orderBy('position', 'desc')
    .limit(1)
    .offset(limit)
    .executeTakeFirst();
  if (newestExcess) await deleteUpTo(writer, userId, deviceId, newestExcess.position);
}

/** Identifies a request that sends messages. */
export interface SentTransaction {
  readonly origin: string;
  readonly deviceId: string;
  readonly digest: string;
}

/** Stores a transaction. @returns false when it was stored before */
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

/** Deletes the transactions of requests before a time, in milliseconds since the epoch. */
export async function deleteTransactionsBefore(
  writer: Writer<ToDeviceTables>,
  sentBefore: number,
): Promise<void> {
  await writer.deleteFrom('to_device_transactions').where('sent_at', '<', sentBefore).execute();
}

/**
 * Deletes old transactions of an origin. The newest `limit + 1` remain, and those that were sent at the same time as
 * the oldest of them.
 */
export async function deleteAllButNewestTransactions(
  writer: Writer<ToDeviceTables>,
  origin: string,
  limit: number,
): Promise<void> {
  const newestExcess = await writer
    .selectFrom('to_device_transactions')
    .select('sent_at')
    .where('origin', '=', origin)
    .orderBy('sent_at', 'desc')
    .limit(1)
    .offset(limit)
    .executeTakeFirst();
  if (!newestExcess) return;
  await writer
    .deleteFrom('to_device_transactions')
    .where('origin', '=', origin)
    .where('sent_at', '<', newestExcess.sent_at)
    .execute();
}
