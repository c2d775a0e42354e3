import type { Clock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/database/index.ts';
import type { Jobs } from '../../../kernel/jobs/index.ts';
import { deleteOldestOutgoing, deleteOutgoingBefore, readLongQueues } from '../store.ts';
import type { SenderTables } from '../tables.ts';

export interface TrimOutboxDeps {
  readonly database: Database;
  readonly clock: Clock;
}

const hour = 3_600_000;

/** Maximum age of an EDU in milliseconds. */
const maxAge = 30 * 24 * hour;

/** Maximum number of EDUs for one destination. */
const maxPerDestination = 50_000;

/** Deletes EDUs that were not acknowledged within 30 days, and the oldest EDUs of destinations with too many. */
export function trimOutboxHourly(jobs: Jobs, deps: TrimOutboxDeps): void {
  jobs.every('federation/forget-edus', hour, { run: () => trimOutbox(deps) });
}

/**
 * Deletes EDUs that are too old, and the oldest EDUs of destinations with more than `limit`.
 * @param limit maximum number of EDUs for one destination
 */
export function trimOutbox({ database, clock }: TrimOutboxDeps, limit = maxPerDestination): Promise<void> {
  return database.transaction<SenderTables, void>(async (writer) => {
    await deleteOutgoingBefore(writer, clock.now() - maxAge);
    for (const destination of await readLongQueues(writer, limit)) {
      await deleteOldestOutgoing(writer, destination, limit);
    }
  });
}
