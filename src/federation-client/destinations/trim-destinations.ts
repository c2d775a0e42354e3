import type { Clock } from '../../kernel/clock.ts';
import type { Database, Writer } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import { deleteOldestUnanswering, deleteUnansweringBefore } from './store.ts';
import type { DestinationTables } from './tables.ts';

export interface TrimDestinationsDeps {
  readonly database: Database;
  readonly clock: Clock;
}

const minute = 60_000;

/**
 * Milliseconds from the end of its backoff until a server that has never answered is deleted. A server to which events
 * or EDUs are to be sent receives a request at the end of its backoff, and so is not deleted for its age.
 */
const maxAge = 24 * 60 * minute;

/** Maximum number of stored servers that have never answered. */
const maxUnanswering = 50_000;

/**
 * Deletes the rows of servers that have never answered, as `trimDestinations` does, every ten minutes: users may
 * name any number of servers that do not exist, for instance in `/keys/query`. Of such a server, only the backoff is
 * lost.
 */
export function trimDestinationsRegularly(jobs: Jobs, deps: TrimDestinationsDeps): void {
  jobs.every('federation-client/trim-destinations', 10 * minute, {
    run: ({ signal }) => trimDestinations(deps, signal),
  });
}

/** Maximum number of servers that one statement deletes, so that other writes do not wait for long. */
const maxPerStatement = 5_000;

/**
 * Deletes the rows of servers that have never answered: those whose backoff ended more than a day ago, and, if more
 * than `max` remain, those whose last failures are the oldest.
 * @param max maximum number of servers that have never answered
 */
export async function trimDestinations(
  { database, clock }: TrimDestinationsDeps,
  signal: AbortSignal,
  max = maxUnanswering,
): Promise<void> {
  const remove = async (removeSome: (writer: Writer<DestinationTables>) => Promise<number>) => {
    let removed = maxPerStatement;
    while (removed === maxPerStatement) {
      signal.throwIfAborted();
      removed = await database.transaction<DestinationTables, number>(removeSome);
    }
  };
  const endedBefore = clock.now() - maxAge;
  await remove((writer) => deleteUnansweringBefore(writer, endedBefore, maxPerStatement));
  await remove((writer) => deleteOldestUnanswering(writer, max, maxPerStatement));
}
