import type { Generated, Selectable } from 'kysely';
import type { JsonValue } from '../../protocol/index.ts';
import type { Reader, Writer } from '../database/index.ts';
import type { JobRequest, JobState } from './job.ts';

export interface JobTables {
  jobs: {
    id: Generated<number>;
    kind: string;
    key: string | null;
    payload: string;
    state: JobState;
    run_at: number;
    created_ts: number;
    /** Counts the orders, so that one that comes while the job runs is not lost when it ends. */
    revision: number;
    attempts: number;
    /** Until when a process has it for itself; 0 when nobody has. */
    lease_until: number;
    finished_ts: number | null;
    keep_until: number | null;
    result: string | null;
    error: string | null;
  };
}

/** A job that this process has for itself. */
export interface ClaimedJob {
  readonly id: number;
  readonly kind: string;
  readonly key: string | null;
  readonly payload: JsonValue;
  readonly revision: number;
  readonly attempts: number;
}

/** Writes an order; see `JobRequest.key` for what happens to one that is there already. */
export async function insertJob(writer: Writer<JobTables>, order: JobRequest, now: number): Promise<void> {
  const row = {
    kind: order.kind,
    key: order.key ?? null,
    payload: JSON.stringify(order.payload),
    run_at: order.runAt,
    state: 'waiting' as const,
    created_ts: now,
    revision: 1,
    attempts: 0,
    lease_until: 0,
  };
  await writer
    .insertInto('jobs')
    .values(row)
    .onConflict((conflict) => {
      const update = conflict.columns(['kind', 'key']).doUpdateSet((eb) => ({
        payload: eb.ref('excluded.payload'),
        run_at: eb.ref('excluded.run_at'),
        state: eb.ref('excluded.state'),
        created_ts: eb.ref('excluded.created_ts'),
        revision: eb('jobs.revision', '+', 1),
        attempts: 0,
        finished_ts: null,
        keep_until: null,
        result: null,
        error: null,
      }));
      // Unless it only waits: then it stays as it is.
      return order.replace
        ? update
        : update.where((eb) => eb.or([eb('jobs.state', '<>', 'waiting'), eb('jobs.lease_until', '<>', 0)]));
    })
    .execute();
}

/** Whether there was one that had not run. One that runs is not stopped, but it is not tried again. */
export async function deleteJob(writer: Writer<JobTables>, kind: string, key: string): Promise<boolean> {
  const { numDeletedRows } = await writer
    .deleteFrom('jobs')
    .where('kind', '=', kind)
    .where('key', '=', key)
    .where('state', '=', 'waiting')
    .executeTakeFirstOrThrow();
  return numDeletedRows > 0n;
}

/** Those of `kinds` that are due and nobody has, the longest due first. */
export async function dueJobs(
  reader: Reader<JobTables>,
  kinds: readonly string[],
  now: number,
  limit: number,
): Promise<ClaimedJob[]> {
  const rows = await reader
    .selectFrom('jobs')
    .selectAll()
    .where('state', '=', 'waiting')
    .where('run_at', '<=', now)
    .where('lease_until', '<=', now)
    .where('kind', 'in', kinds)
    .orderBy('run_at')
    .orderBy('id')
    .limit(limit)
    .execute();
  return rows.map(claimed);
}

function claimed(row: Selectable<JobTables['jobs']>): ClaimedJob {
  const { id, kind, key, payload, revision, attempts } = row;
  return { id, kind, key, payload: JSON.parse(payload) as JsonValue, revision, attempts: attempts + 1 };
}

/** When the next one of `kinds` is due, or its lease ends; `undefined` when none waits. */
export async function nextDue(
  reader: Reader<JobTables>,
  kinds: readonly string[],
  now: number,
): Promise<number | undefined> {
  const waiting = reader.selectFrom('jobs').where('state', '=', 'waiting').where('kind', 'in', kinds);
  const free = await waiting
    .select((eb) => eb.fn.min('run_at').as('due'))
    .where('lease_until', '<=', now)
    .executeTakeFirst();
  const leased = await waiting
    .select((eb) => eb.fn.min('lease_until').as('due'))
    .where('lease_until', '>', now)
    .executeTakeFirst();
  const times = [free?.due, leased?.due].filter((time) => typeof time === 'number');
  return times.length > 0 ? Math.min(...times) : undefined;
}

/** Takes the job until `until`; whether nobody was faster. */
export async function claimJob(
  writer: Writer<JobTables>,
  job: ClaimedJob,
  now: number,
  until: number,
): Promise<boolean> {
  const { numUpdatedRows } = await writer
    .updateTable('jobs')
    .set({ lease_until: until, attempts: job.attempts })
    .where('id', '=', job.id)
    .where('revision', '=', job.revision)
    .where('state', '=', 'waiting')
    .where('lease_until', '<=', now)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** Keeps jobs that run for longer. */
export async function renewLeases(
  writer: Writer<JobTables>,
  ids: readonly number[],
  until: number,
): Promise<void> {
  await writer
    .updateTable('jobs')
    .set({ lease_until: until })
    .where('id', 'in', ids)
    .where('state', '=', 'waiting')
    .execute();
}

/** Gives up every lease: for a process that is alone, at its start. */
export async function releaseAll(writer: Writer<JobTables>): Promise<void> {
  await writer.updateTable('jobs').set({ lease_until: 0 }).where('lease_until', '>', 0).execute();
}

/** Replaces the payload of a job that runs, unless it was ordered anew meanwhile. */
export async function saveProgress(
  writer: Writer<JobTables>,
  job: ClaimedJob,
  payload: JsonValue,
): Promise<void> {
  await writer
    .updateTable('jobs')
    .set({ payload: JSON.stringify(payload) })
    .where('id', '=', job.id)
    .where('revision', '=', job.revision)
    .execute();
}

/** What a run does to its job. */
export type JobOutcome = Partial<Omit<Selectable<JobTables['jobs']>, 'id'>> | 'delete';

/** Changes the job as its run says, if it was not ordered anew meanwhile; then it only becomes free to run again. */
export async function settleJob(
  writer: Writer<JobTables>,
  job: ClaimedJob,
  outcome: JobOutcome,
): Promise<void> {
  if ((await applyOutcome(writer, job, outcome)) > 0n) return;
  await writer.updateTable('jobs').set({ lease_until: 0 }).where('id', '=', job.id).execute();
}

async function applyOutcome(
  writer: Writer<JobTables>,
  job: ClaimedJob,
  outcome: JobOutcome,
): Promise<bigint> {
  if (outcome === 'delete') {
    const query = writer.deleteFrom('jobs').where('id', '=', job.id).where('revision', '=', job.revision);
    return (await query.executeTakeFirstOrThrow()).numDeletedRows;
  }
  const query = writer
    .updateTable('jobs')
    .set({ lease_until: 0, ...outcome })
    .where('id', '=', job.id)
    .where('revision', '=', job.revision);
  return (await query.executeTakeFirstOrThrow()).numUpdatedRows;
}

/** Lets a recurring job come no later than `latest`, and makes it when it is not there. */
export async function ensureRecurring(
  writer: Writer<JobTables>,
  kind: string,
  latest: number,
  now: number,
): Promise<void> {
  await insertJob(writer, { kind, key: '', payload: null, runAt: latest }, now);
  await writer
    .updateTable('jobs')
    .set({ run_at: latest })
    .where('kind', '=', kind)
    .where('key', '=', '')
    .where('run_at', '>', latest)
    .execute();
}

/** Forgets those that are done or failed and were kept long enough. */
export async function deleteKept(writer: Writer<JobTables>, now: number): Promise<void> {
  await writer.deleteFrom('jobs').where('state', '<>', 'waiting').where('keep_until', '<=', now).execute();
}
