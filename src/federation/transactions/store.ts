import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { TransactionTables } from './tables.ts';

/** Returns the stored response to a transaction as JSON; `undefined` when none is stored. */
export async function readTransactionAnswer(
  reader: Reader<TransactionTables>,
  origin: string,
  txnId: string,
): Promise<string | undefined> {
  const row = await reader
    .selectFrom('received_transactions')
    .select('answer')
    .where('origin', '=', origin)
    .where('txn_id', '=', txnId)
    .executeTakeFirst();
  return row?.answer;
}

/** Stores a received transaction with its response; a transaction that is stored already stays as it is. */
export async function insertTransaction(
  writer: Writer<TransactionTables>,
  row: TransactionTables['received_transactions'],
): Promise<void> {
  await writer
    .insertInto('received_transactions')
    .values(row)
    .onConflict((conflict) => conflict.columns(['origin', 'txn_id']).doNothing())
    .execute();
}

/** Deletes the transactions that were received before a time. @param before milliseconds since the epoch */
export async function deleteTransactionsBefore(
  writer: Writer<TransactionTables>,
  before: number,
): Promise<void> {
  await writer.deleteFrom('received_transactions').where('received_ts', '<', before).execute();
}

/**
 * Deletes the oldest transactions, so that at most `limit` remain. Transactions that were received in the same
 * millisecond are deleted together.
 */
export async function deleteOldestTransactions(
  writer: Writer<TransactionTables>,
  limit: number,
): Promise<void> {
  const newestToDelete = await writer
    .selectFrom('received_transactions')
    .select('received_ts')
    .orderBy('received_ts', 'desc')
    .offset(limit)
    .limit(1)
    .executeTakeFirst();
  if (!newestToDelete) return;
  await writer
    .deleteFrom('received_transactions')
    .where('received_ts', '<=', newestToDelete.received_ts)
    .execute();
}
