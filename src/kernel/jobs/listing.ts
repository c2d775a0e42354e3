import { sql } from 'kysely';
import type { JsonValue } from '../../protocol/index.ts';
import type { Reader } from '../database/index.ts';
import type { Job, JobProgress, JobState } from './job.ts';
import type { JobStatus } from './job-status.ts';
import type { JobTables } from './store.ts';

/** Selects the jobs of a list. */
export interface JobFilter {
  /** One kind, or several of them. */
  readonly kind?: string | readonly string[];
  readonly key?: string;
  readonly state?: JobState;
  /** Selects jobs that have one of these statuses. A job that waits for its next attempt is `scheduled`. */
  readonly statuses?: readonly JobStatus[];
  /**
   * Milliseconds since the epoch. Selects jobs whose time is earlier: the end of a finished job, the scheduling of a
   * running job, or the planned start of a waiting job.
   */
  readonly before?: number;
  /** Id of the last job of the previous page. */
  readonly after?: number;
  /** Whether the jobs are in descending order of their ids; by default ascending. */
  readonly newestFirst?: boolean;
  /** Maximum number; by default 100. */
  readonly limit?: number;
}

/**
 * Reads the jobs that match the filter, by id.
 * @param now milliseconds since the epoch
 * @param progressOf reads the progress of a kind of jobs from a payload; null for kinds that do not report it
 */
export async function listJobs(
  reader: Reader<JobTables>,
  { kind, key, state, statuses, before, after, newestFirst = false, limit = 100 }: JobFilter,
  now: number,
  progressOf: (kind: string, payload: JsonValue) => JobProgress | null,
): Promise<Job[]> {
  let query = reader.selectFrom('jobs').selectAll();
  if (after !== undefined) query = query.where('id', newestFirst ? '<' : '>', after);
  if (kind !== undefined) query = query.where('kind', 'in', [kind].flat());
  if (key !== undefined) query = query.where('key', '=', key);
  if (state !== undefined) query = query.where('state', '=', state);
  if (statuses !== undefined) query = query.where(statusOf(now), 'in', statuses);
  if (before !== undefined) query = query.where(timeOf(now), '<', before);
  const rows = await query
    .orderBy('id', newestFirst ? 'desc' : 'asc')
    .limit(limit)
    .execute();
  return rows.map((row) => {
    const payload = parse(row.payload);
    return {
      id: row.id,
      kind: row.kind,
      key: row.key,
      payload,
      progress: progressOf(row.kind, payload),
      state: row.state,
      running: row.lease_until > now,
      runAt: row.run_at,
      createdAt: row.created_ts,
      attempts: row.attempts,
      finishedAt: row.finished_ts,
      result: row.result === null ? null : parse(row.result),
      error: row.error,
    };
  });
}

/** The status of a job as in `JobFilter.statuses`. */
const statusOf = (now: number) =>
  sql<JobStatus>`case when state = 'done' then 'complete'
    when state <> 'waiting' then state
    when lease_until > ${now} then 'active'
    else 'scheduled' end`;

/** The time of a job as in `JobFilter.before`. */
const timeOf = (now: number) =>
  sql<number>`coalesce(finished_ts,
    case when state = 'waiting' and lease_until <= ${now} then run_at else created_ts end)`;

const parse = (text: string) => JSON.parse(text) as JsonValue;
