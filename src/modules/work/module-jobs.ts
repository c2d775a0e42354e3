import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { JobAttempt, Jobs } from '../../kernel/jobs/index.ts';
import type { JsonValue } from '../../protocol/index.ts';
import type { JobAccess, ModuleJob } from '../api/index.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';

export interface ModuleJobsDeps {
  readonly jobs: Jobs;
  readonly database: Database;
  readonly clock: Clock;
}

/** Timeout of one attempt of a job, in milliseconds. */
const jobTimeout = 60_000;

/** Minimum milliseconds between two runs of a repeated job. */
const minInterval = 1_000;

const jobName = /^[A-Za-z0-9._-]{1,64}$/;

type Run = (job: ModuleJob) => void | Promise<void>;

/** Returns the jobs as a module uses them. @param module its name in the configuration */
export function jobAccess(
  module: string,
  { jobs, database, clock }: ModuleJobsDeps,
  calls: ModuleCalls,
): JobAccess {
  const kindOf = (name: string): string => {
    if (!jobName.test(name))
      throw new Error(`'${name}' is not a name of a job, which must match ${jobName.source}`);
    return `modules/${name}`;
  };
  const handler = (name: string, run: Run) => ({
    parallel: 1,
    run: ({ payload, attempt, signal }: JobAttempt<JsonValue>): Promise<void> =>
      calls.run(module, `job ${name}`, () => run({ payload, attempt, signal }), jobTimeout),
  });
  return {
    register: (name, run) => jobs.register<JsonValue>(kindOf(name), handler(name, run)),
    repeat(name, interval, run) {
      const { parallel, run: attempt } = handler(name, run);
      jobs.every(kindOf(name), Math.max(interval, minInterval), { parallel, run: attempt });
    },
    schedule: (name, { payload = null, key, delay = 0 } = {}) =>
      calls.context.leave(() =>
        database.transaction((writer) =>
          jobs.schedule(writer, {
            kind: kindOf(name),
            payload,
            runAt: clock.now() + Math.max(0, delay),
            ...(key !== undefined && { key }),
          }),
        ),
      ),
  };
}
