import { manualClock } from '../../../../test/support/clocks/manual-clock.ts';
import type { OpenDatabase } from '../../../../test/support/databases/databases.ts';
import type { JsonValue } from '../../../protocol/index.ts';
import type { Database } from '../../database/index.ts';
import { createLogger } from '../../observability/index.ts';
import { type JobHandler, type JobRequest, Jobs, jobMigrations } from '../index.ts';

/** The jobs of one process, with a clock that the test advances. */
export type JobsUnderTest = Awaited<ReturnType<typeof setUpJobs>>;

/** Returns jobs that are not started yet, on a new database and with a new clock unless these are given. */
export async function setUpJobs(
  open: OpenDatabase,
  given?: {
    readonly database?: Database;
    readonly clock?: ReturnType<typeof manualClock>;
    readonly isOnlyProcess?: boolean;
  },
) {
  const database = given?.database ?? (await open(jobMigrations));
  const clock = given?.clock ?? manualClock();
  const lines: { msg: string; level: string }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLogger({ level: 'warn', destination });
  const jobs = new Jobs({ database, clock, log, isOnlyProcess: given?.isOnlyProcess ?? true });
  /** Returns the levels at which failures were logged. */
  const failures = () => lines.filter(({ msg }) => msg === 'Job failed').map(({ level }) => level);
  const schedule = (request: Partial<JobRequest>) =>
    database.transaction((writer) =>
      jobs.schedule(writer, { kind: 'greet', payload: 'hello', runAt: clock.now(), ...request }),
    );
  return { database, clock, jobs, schedule, failures };
}

/** Returns a handler that records the payloads of the jobs that it runs in `ran`. */
export function recorder() {
  const ran: JsonValue[] = [];
  const run: JobHandler<JsonValue>['run'] = async ({ payload }) => {
    ran.push(payload);
  };
  return { ran, handler: { run } };
}

/** Advances the clock and waits for the jobs that come due. */
export async function advance({ clock, jobs }: JobsUnderTest, milliseconds: number): Promise<void> {
  clock.advance(milliseconds);
  await jobs.settled();
}
