import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import type { RoomTables } from '../tables.ts';

const hour = 3_600_000;

/** Transaction ids are stored for this many milliseconds; clients stop retrying long before. */
const maxTransactionAge = 24 * hour;

export interface TransactionCleanupDeps {
  readonly database: Database;
  readonly streams: StreamReader;
  readonly clock: Clock;
}

/**
 * Registers the hourly job that deletes transaction ids after a day. The rows of transaction ids have no time, so each
 * run also stores the current position of the streams and the time, which tell later runs how old a row is.
 */
export function registerTransactionCleanup(jobs: Jobs, deps: TransactionCleanupDeps): void {
  jobs.every('rooms/forget-transactions', hour, { run: () => deleteOldTransactions(deps) });
}

/** Runs the job of `registerTransactionCleanup` once. */
export function deleteOldTransactions({ database, streams, clock }: TransactionCleanupDeps): Promise<void> {
  const now = clock.now();
  return database.transaction<RoomTables, void>(async (writer) => {
    await writer
      .insertInto('transaction_marks')
      .values({ position: streams.current, ts: now })
      .onConflict((conflict) => conflict.column('position').doNothing())
      .execute();
    const mark = await writer
      .selectFrom('transaction_marks')
      .select('position')
      .where('ts', '<=', now - maxTransactionAge)
      .orderBy('position', 'desc')
      .limit(1)
      .executeTakeFirst();
    if (!mark) return;
    await writer.deleteFrom('event_transactions').where('event_nid', '<=', mark.position).execute();
    await writer.deleteFrom('transaction_marks').where('position', '<', mark.position).execute();
  });
}
