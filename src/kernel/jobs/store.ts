import { type Generated, type Selectable, sql } from 'kysely';
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
    /** Counts how often the job was scheduled, so that a request during an attempt is not lost when the attempt ends. */
    revision: number;
    attempts: number;
    /** End of the lease of the process that runs it; 0 without a lease. */
    lease_until: number;
    finished_ts: number | null;
    keep_until: number | null;
    result: string | null;
    error: string | null;
    /** Trace context of the request that scheduled the job, as a `traceparent`. */
    trace_context: string | null;
  };
}

/** A row of the jobs that wait or run. */
export interface StoredJob {
  readonly id: number;
  /** Milliseconds since the epoch. */
  readonly runAt: number;
  readonly kind: string;
  readonly key: string | null;
  readonly payload: JsonValue;
  readonly revision: number;
  /** Number of the attempt that a lease begins, from 1. */
  readonly attempts: number;
  /** End of the lease that was read; 0 without a lease. */
  readonly leaseUntil: number;
  readonly traceContext: string | null;
}

/** A literal, because SQLite uses a partial index only where it sees the condition of the index in the statement. */
const waiting = sql.lit<JobState>('waiting');

/** The circumstances in which a job is inserted. */
export interface JobOrigin {
  readonly traceContext?: string | null | undefined;
  /**
   * Whether all stored leases belong to processes that have ended, so that no job is running. Only true before the
   * start of a process that alone runs jobs.
   */
  readonly areLeasesOutdated?: boolean;
}

/** Inserts a job, or updates the job of this kind and key as `JobRequest.key` says. */
export function insertJob(
  writer: Writer<JobTables>,
  request: JobRequest,
  now: number,
  origin?: JobOrigin,
): Promise<void> {
  return insertJobs(writer, [request], now, origin);
}

/**
 * Like `insertJob`, for several jobs in one statement.
 * @param requests requests with different keys; `replace` of the first request counts for all of them
 */
export async function insertJobs(
  writer: Writer<JobTables>,
  requests: readonly JobRequest[],
  now: number,
  { traceContext = null, areLeasesOutdated = false }: JobOrigin = {},
): Promise<void> {
  if (requests.length === 0) return;
  const rows = requests.map((request) => ({
    kind: request.kind,
    key: request.key ?? null,
    payload: JSON.stringify(request.payload),
    run_at: request.runAt,
    state: 'waiting' as const,
    created_ts: now,
    revision: 1,
    attempts: 0,
    lease_until: 0,
    trace_context: traceContext,
  }));
  await writer
    .insertInto('jobs')
    .values(rows)
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
        trace_context: eb.ref('excluded.trace_context'),
        ...(areLeasesOutdated && afterCrash(now)),
      }));
      if (requests[0]?.replace) return update;
      // Does not change a waiting job.
      return update.where((eb) => {
        const hasEnded = eb('jobs.state', '<>', 'waiting');
        return areLeasesOutdated ? hasEnded : eb.or([hasEnded, eb('jobs.lease_until', '<>', 0)]);
      });
    })
    .execute();
}

/** The error of an attempt that ended without an outcome. */
export const interruption =
  'The attempt was interrupted: the server ended, or the outcome could not be stored';

/** Milliseconds for which a job waits when crashes made it fail and it is scheduled again at a start of the server. */
const pauseAfterCrashes = 3_600_000;

/**
 * Columns of a job that is scheduled before the start: after an interrupted attempt it keeps its number of attempts.
 * Otherwise a job that crashes the process, and that is scheduled at every start, would crash every start.
 */
function afterCrash(now: number) {
  const crashed = sql<boolean>`(jobs.lease_until <> 0 or jobs.error = ${sql.lit(interruption)})`;
  const pausedUntil = sql.lit(now + pauseAfterCrashes);
  return {
    attempts: sql<number>`case when ${crashed} then jobs.attempts else 0 end`,
    error: sql<string | null>`case when ${crashed} then jobs.error end`,
    run_at: sql<number>`case when ${crashed} and jobs.state = 'failed' and excluded.run_at < ${pausedUntil}
      then ${pausedUntil} else excluded.run_at end`,
  };
}

/** Deletes a job that waits or runs. A running attempt continues, and is not retried. @returns whether there was such a job */
export async function deleteJob(writer: Writer<JobTables>, kind: string, key: string): Promise<boolean> {
  const { numDeletedRows } = await writer
    .deleteFrom('jobs')
    .where('kind', '=', kind)
    .where('key', '=', key)
    .where('state', '=', 'waiting')
    .executeTakeFirstOrThrow();
  return numDeletedRows > 0n;
}

/**
 * Marks a job that waits or runs as cancelled. A running attempt continues until it calls `isCancelled`, and is not
 * retried.
 * @param keepUntil end of the time for which the job stays in the list, in milliseconds since the epoch
 * @returns whether there was such a job
 */
export async function cancelJob(
  writer: Writer<JobTables>,
  { kind, key }: { readonly kind: string; readonly key: string },
  now: number,
  keepUntil: number,
): Promise<boolean> {
  const { numUpdatedRows } = await writer
    .updateTable('jobs')
    .set({ state: 'cancelled', finished_ts: now, keep_until: keepUntil })
    .where('kind', '=', kind)
    .where('key', '=', key)
    .where('state', '=', 'waiting')
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** Returns whether a job was cancelled, or deleted by the cancellation. */
export async function isCancelled(reader: Reader<JobTables>, id: number): Promise<boolean> {
  const row = await reader.selectFrom('jobs').select('state').where('id', '=', id).executeTakeFirst();
  return row === undefined || row.state === 'cancelled';
}

/** Reads the jobs of `kinds` that are not leased, in the order of their due times, including jobs that are not due yet. */
export async function nextJobs(
  reader: Reader<JobTables>,
  kinds: readonly string[],
  now: number,
  limit: number,
): Promise<StoredJob[]> {
  return (await nextJobsQuery(reader, kinds, now, limit).execute()).map(storedJobOf);
}

/** The query of `nextJobs`. It reads in the order of the index by time, since many jobs may wait for a later time. */
export const nextJobsQuery = (
  reader: Reader<JobTables>,
  kinds: readonly string[],
  now: number,
  limit: number,
) =>
  reader
    .selectFrom('jobs')
    .selectAll()
    .where('state', '=', waiting)
    .where('lease_until', '<=', now)
    // An expression, so that SQLite does not read and sort all jobs of these kinds by the index of kinds.
    .where(sql<string>`kind || ''`, 'in', kinds)
    .orderBy('run_at')
    .orderBy('id')
    .limit(limit);

function storedJobOf(row: Selectable<JobTables['jobs']>): StoredJob {
  const { id, kind, key, payload, revision, attempts } = row;
  return {
    id,
    runAt: row.run_at,
    kind,
    key,
    payload: JSON.parse(payload) as JsonValue,
    revision,
    attempts: attempts + 1,
    leaseUntil: row.lease_until,
    traceContext: row.trace_context,
  };
}

/** Returns when the next lease of a job of `kinds` ends; `undefined` when none is leased. */
export async function nextLeaseEnd(
  reader: Reader<JobTables>,
  kinds: readonly string[],
  now: number,
): Promise<number | undefined> {
  const leased = await reader
    .selectFrom('jobs')
    .select((eb) => eb.fn.min('lease_until').as('end'))
    .where('state', '=', waiting)
    .where('kind', 'in', kinds)
    .where('lease_until', '>', now)
    .executeTakeFirst();
  return leased?.end ?? undefined;
}

/** Leases the job until `until`. @returns false when it was leased, scheduled again or ended meanwhile */
export async function claimJob(
  writer: Writer<JobTables>,
  job: StoredJob,
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

/**
 * Ends every lease now, as if it had expired, so that the attempts count as interrupted; for the only process that runs
 * jobs, at its start.
 */
export async function expireLeases(writer: Writer<JobTables>, now: number): Promise<void> {
  await writer.updateTable('jobs').set({ lease_until: now }).where('lease_until', '>', now).execute();
}

/** Applies the outcome of an attempt whose lease has expired, unless the job was changed meanwhile. */
export async function settleInterrupted(
  writer: Writer<JobTables>,
  job: StoredJob,
  outcome: Exclude<JobOutcome, 'delete'>,
): Promise<void> {
  await writer
    .updateTable('jobs')
    .set({ lease_until: 0, ...outcome })
    .where('id', '=', job.id)
    .where('revision', '=', job.revision)
    .where('state', '=', 'waiting')
    .where('lease_until', '=', job.leaseUntil)
    .execute();
}

/** Replaces the payload of a running job, unless the job was scheduled again meanwhile. */
export async function saveProgress(
  writer: Writer<JobTables>,
  job: StoredJob,
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

/**
 * Applies the outcome of an attempt. If the job was scheduled again meanwhile, only ends its lease, so that it runs
 * again. If the job was cancelled meanwhile, only ends its lease, too.
 */
export async function settleJob(
  writer: Writer<JobTables>,
  job: StoredJob,
  outcome: JobOutcome,
): Promise<void> {
  if ((await applyOutcome(writer, job, outcome)) > 0n) return;
  await writer.updateTable('jobs').set({ lease_until: 0 }).where('id', '=', job.id).execute();
}

async function applyOutcome(writer: Writer<JobTables>, job: StoredJob, outcome: JobOutcome): Promise<bigint> {
  if (outcome === 'delete') {
    const query = writer
      .deleteFrom('jobs')
      .where('id', '=', job.id)
      .where('revision', '=', job.revision)
      .where('state', '<>', 'cancelled');
    return (await query.executeTakeFirstOrThrow()).numDeletedRows;
  }
  const query = writer
    .updateTable('jobs')
    .set({ lease_until: 0, ...outcome })
    .where('id', '=', job.id)
    .where('revision', '=', job.revision)
    .where('state', '<>', 'cancelled');
  return (await query.executeTakeFirstOrThrow()).numUpdatedRows;
}

/** Creates the recurring jobs that are missing. A job that is due in more than its interval becomes due after its interval. */
export async function ensureRecurring(
  writer: Writer<JobTables>,
  intervals: ReadonlyMap<string, number>,
  now: number,
  origin: JobOrigin,
): Promise<void> {
  const jobs = [...intervals].map(([kind, interval]) => ({
    kind,
    key: '',
    payload: null,
    runAt: now + interval,
  }));
  await insertJobs(writer, jobs, now, origin);
  // One statement for each length of interval.
  for (const [runAt, some] of Map.groupBy(jobs, ({ runAt }) => runAt)) {
    const kinds = some.map(({ kind }) => kind);
    await writer
      .updateTable('jobs')
      .set({ run_at: runAt })
      .where('kind', 'in', kinds)
      .where('key', '=', '')
      .where('run_at', '>', runAt)
      .execute();
  }
}

/** Deletes finished jobs whose retention time has passed. */
export async function deleteExpired(writer: Writer<JobTables>, now: number): Promise<void> {
  await writer.deleteFrom('jobs').where('state', '<>', waiting).where('keep_until', '<=', now).execute();
}
