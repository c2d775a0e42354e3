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
    /** Counts how often the job was scheduled, so that a request while it runs is not lost when it ends. */
    revision: number;
    attempts: number;
    /** End of the lease of the process that runs it; 0 without a lease. */
    lease_until: number;
    finished_ts: number | null;
    keep_until: number | null;
    result: string | null;
    error: string | null;
  };
}

/** A job that this process has leased. */
export interface ClaimedJob {
  readonly id: number;
  readonly kind: string;
  readonly key: string | null;
  readonly payload: JsonValue;
  readonly revision: number;
  readonly attempts: number;
}

/** Inserts a job, or updates the one of this kind and key as `JobRequest.key` says. */
export async function insertJob(writer: Writer<JobTables>, request: JobRequest, now: number): Promise<void> {
  const row = {
    kind: request.kind,
    key: request.key ?? null,
    payload: JSON.stringify(request.payload),
    run_at: request.runAt,
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
      // A job that waits stays as it is.
      return request.replace
        ? update
        : update.where((eb) => eb.or([eb('jobs.state', '<>', 'waiting'), eb('jobs.lease_until', '<>', 0)]));
    })
    .execute();
}

/** Deletes a waiting job; one that runs is not stopped, but not retried either. @returns whether there was one */
export async function deleteJob(writer: Writer<JobTables>, kind: string, key: string): Promise<boolean> {
  const { numDeletedRows } = await writer
    .deleteFrom('jobs')
    .where('kind', '=', kind)
    .where('key', '=', key)
    .where('state', '=', 'waiting')
    .executeTakeFirstOrThrow();
  return numDeletedRows > 0n;
}

/** Reads the jobs of `kinds` that are due and not leased, the longest due first. */
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

/** Returns when the next job of `kinds` is due or its lease ends; `undefined` when none waits. */
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

/** Leases the job until `until`. @returns false when another process was faster */
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

/** Extends the leases of running jobs. */
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

/** Ends every lease; for the only process that runs jobs, at its start. */
export async function releaseAll(writer: Writer<JobTables>): Promise<void> {
  await writer.updateTable('jobs').set({ lease_until: 0 }).where('lease_until', '>', 0).execute();
}

/** Replaces the payload of a running job, unless the job was scheduled again meanwhile. */
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

/** Changes of a job's row after an attempt. */
export type JobOutcome = Partial<Omit<Selectable<JobTables['jobs']>, 'id'>> | 'delete';

/** Applies the outcome of an attempt; a job that was scheduled again meanwhile only loses its lease, to run again. */
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

/** Creates a recurring job if it is missing, and moves it to `latest` if it is later. */
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

/** Deletes finished jobs whose time to be kept is over. */
export async function deleteKept(writer: Writer<JobTables>, now: number): Promise<void> {
  await writer.deleteFrom('jobs').where('state', '<>', 'waiting').where('keep_until', '<=', now).execute();
}
