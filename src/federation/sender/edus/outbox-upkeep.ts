import type { Clock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/database/index.ts';
import type { Jobs } from '../../../kernel/jobs/index.ts';
import { deleteOldestOutgoing, deleteOutgoingBefore, readLongQueues } from '../store.ts';
import type { SenderTables } from '../tables.ts';

export interface OutboxUpkeepDeps {
  readonly database: Database;
  readonly clock: Clock;
}

const hour = 3_600_000;

/** Milliseconds for which an EDU waits for its destination, and how many do for one destination. */
const [memory, maxWaiting] = [30 * 24 * hour, 50_000];

/** Forgets EDUs of the outbox that nobody has taken for a month, and the oldest where there are very many. */
export function registerOutboxUpkeep(jobs: Jobs, deps: OutboxUpkeepDeps): void {
  jobs.every('federation/forget-edus', hour, { run: () => trimOutbox(deps) });
}

/** One round of `registerOutboxUpkeep`. @param most how many may wait for one destination */
export function trimOutbox({ database, clock }: OutboxUpkeepDeps, most = maxWaiting): Promise<void> {
  return database.transaction<SenderTables, void>(async (writer) => {
    await deleteOutgoingBefore(writer, clock.now() - memory);
    for (const destination of await readLongQueues(writer, most)) {
      await deleteOldestOutgoing(writer, destination, most);
    }
  });
}
