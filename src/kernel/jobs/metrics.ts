import type { Clock } from '../clock.ts';
import type { Database } from '../database/index.ts';
import { type Metrics, PeriodicReading } from '../observability/index.ts';
import type { JobState } from './job.ts';
import type { JobTables } from './store.ts';

/** Milliseconds between two counts. */
const interval = 15_000;

interface JobCount {
  readonly kind: string;
  readonly state: JobState;
  readonly count: number;
  /** Earliest due time of these jobs, in milliseconds since the epoch. */
  readonly firstRunAt: number;
}

/** Exposes the numbers of waiting and failed jobs, and for how long the oldest waiting or running job has been due. */
export function reportJobs(metrics: Metrics, database: Database, clock: Clock): void {
  const counts = new PeriodicReading<readonly JobCount[]>(clock, interval, () => countJobs(database));
  metrics.gauge({
    name: 'server_jobs',
    help: 'Background jobs by kind and state: waiting (also those that run) and failed.',
    labelNames: ['kind', 'state'],
    async collect() {
      this.reset();
      for (const { kind, state, count } of (await counts.value()) ?? []) {
        if (state === 'waiting' || state === 'failed') this.set({ kind, state }, count);
      }
    },
  });
  metrics.gauge({
    name: 'server_jobs_oldest_due_seconds',
    help: 'For how long the oldest job that waits or runs has been due.',
    async collect() {
      const waiting = ((await counts.value()) ?? []).filter(({ state }) => state === 'waiting');
      const first = Math.min(clock.now(), ...waiting.map(({ firstRunAt }) => firstRunAt));
      this.set((clock.now() - first) / 1_000);
    },
  });
}

async function countJobs(database: Database): Promise<readonly JobCount[]> {
  return database
    .scanner<JobTables>()
    .selectFrom('jobs')
    .select(({ fn }) => [
      'kind',
      'state',
      fn.countAll<number>().as('count'),
      fn.min<number>('run_at').as('firstRunAt'),
    ])
    .groupBy(['kind', 'state'])
    .execute();
}
