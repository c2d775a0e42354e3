import type { Reader, Writer } from '../kernel/database/index.ts';
import type { AppserviceTables } from './tables.ts';

export type OutboxRow = AppserviceTables['appservice_outbox'];

/** A row without its service and its position. */
export type OutboxEntry = Omit<OutboxRow, 'service_id' | 'position'>;
export type QueueRow = AppserviceTables['appservice_queues'];

/** Maximum number of rows in a statement; each binds five values, far fewer than both databases allow. */
const rowsPerStatement = 2_000;

/**
 * Number of transaction ids that are skipped after a backup was restored. Services may have received transactions with
 * some of these ids since the backup was made.
 */
const skippedIds = 1_000_000;

/** Adds entries to the outboxes of services; entries that exist already stay as they are. */
export async function insertOutbox(
  writer: Writer<AppserviceTables>,
  rows: readonly OutboxRow[],
): Promise<void> {
  for (let start = 0; start < rows.length; start += rowsPerStatement) {
    await writer
      .insertInto('appservice_outbox')
      .values(rows.slice(start, start + rowsPerStatement))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

/**
 * Returns the oldest entries of a service: `limit` entries, and all other entries that have the position of the last of
 * these.
 */
export async function readOutbox(
  reader: Reader<AppserviceTables>,
  serviceId: string,
  limit: number,
): Promise<OutboxRow[]> {
  const entriesOfService = reader.selectFrom('appservice_outbox').where('service_id', '=', serviceId);
  const rows = await entriesOfService.selectAll().orderBy('position').limit(limit).execute();
  const last = rows.at(-1);
  if (rows.length < limit || !last) return rows;
  const entriesAtLastPosition = await entriesOfService
    .selectAll()
    .where('position', '=', last.position)
    .execute();
  return [...rows.filter(({ position }) => position < last.position), ...entriesAtLastPosition];
}

/** Deletes the entries of a service's outbox up to a position. */
export async function deleteOutboxUpTo(
  writer: Writer<AppserviceTables>,
  serviceId: string,
  position: number,
): Promise<void> {
  await writer
    .deleteFrom('appservice_outbox')
    .where('service_id', '=', serviceId)
    .where('position', '<=', position)
    .execute();
}

/** Returns the ids of services with entries. */
export async function servicesWithEntries(reader: Reader<AppserviceTables>): Promise<string[]> {
  const rows = await reader.selectFrom('appservice_outbox').select('service_id').distinct().execute();
  return rows.map((row) => row.service_id);
}

/** Returns the last transaction of each service and the paths that it serves. */
export function readQueues(reader: Reader<AppserviceTables>): Promise<QueueRow[]> {
  return reader.selectFrom('appservice_queues').selectAll().execute();
}

export function readQueue(
  reader: Reader<AppserviceTables>,
  serviceId: string,
): Promise<QueueRow | undefined> {
  return reader
    .selectFrom('appservice_queues')
    .selectAll()
    .where('service_id', '=', serviceId)
    .executeTakeFirst();
}

/** Stores the transaction of a service; `body` is null when the service has accepted it. */
export async function writeTransaction(
  writer: Writer<AppserviceTables>,
  serviceId: string,
  txnId: number,
  body: string | null,
): Promise<void> {
  await writer
    .insertInto('appservice_queues')
    .values({ service_id: serviceId, txn_id: txnId, body, spelling: null })
    .onConflict((conflict) => conflict.column('service_id').doUpdateSet({ txn_id: txnId, body }))
    .execute();
}

/** Stores the spelling of paths that has reached a service. */
export async function writeSpelling(
  writer: Writer<AppserviceTables>,
  serviceId: string,
  spelling: string,
): Promise<void> {
  await writer
    .insertInto('appservice_queues')
    .values({ service_id: serviceId, txn_id: 0, body: null, spelling })
    .onConflict((conflict) => conflict.column('service_id').doUpdateSet({ spelling }))
    .execute();
}

/** Returns the position up to which the outbox is complete; `undefined` when nothing was written yet. */
export async function readProgress(reader: Reader<AppserviceTables>): Promise<number | undefined> {
  return (await reader.selectFrom('appservice_progress').select('position').executeTakeFirst())?.position;
}

export async function writeProgress(writer: Writer<AppserviceTables>, position: number): Promise<void> {
  await writer
    .insertInto('appservice_progress')
    .values({ id: 1, position })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ position }))
    .execute();
}

/** Deletes the entries of services that are not registered. Their last transaction ids stay, so that none is used twice. */
export async function deleteOutboxOfUnregistered(
  writer: Writer<AppserviceTables>,
  registered: readonly string[],
): Promise<void> {
  const deletion = writer.deleteFrom('appservice_outbox');
  await (registered.length > 0 ? deletion.where('service_id', 'not in', registered) : deletion).execute();
}

/** Skips transaction ids that services may have received before a backup was restored. */
export async function skipTransactionIds(writer: Writer<AppserviceTables>): Promise<void> {
  await writer
    .updateTable('appservice_queues')
    .set(({ eb }) => ({ txn_id: eb('txn_id', '+', skippedIds) }))
    .execute();
}
