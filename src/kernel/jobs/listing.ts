import type { JsonValue } from '../../protocol/index.ts';
import type { Reader } from '../database/index.ts';
import type { Job, JobState } from './job.ts';
import type { JobTables } from './store.ts';

/** Selects the jobs of a list. */
export interface JobFilter {
  readonly kind?: string;
  readonly key?: string;
  readonly state?: JobState;
  /** Exclusive lower bound of the ids. */
  readonly after?: number;
  /** Maximum number; by default 100. */
  readonly limit?: number;
}

/** Reads the jobs that match the filter, by id. @param now milliseconds since the epoch */
export async function listJobs(
  reader: Reader<JobTables>,
  { kind, key, state, after = 0, limit = 100 }: JobFilter,
  now: number,
): Promise<Job[]> {
  let query = reader.selectFrom('jobs').selectAll().where('id', '>', after);
  if (kind !== undefined) query = query.where('kind', '=', kind);
  if (key !== undefined) query = query.where('key', '=', key);
  if (state !== undefined) query = query.where('state', '=', state);
  const rows = await query.orderBy('id').limit(limit).execute();
  return rows.map((row) => ({
    id: row.id,
    kind: row.kind,
    key: row.key,
    payload: parse(row.payload),
    state: row.state,
    running: row.lease_until > now,
    runAt: row.run_at,
    createdAt: row.created_ts,
    attempts: row.attempts,
    finishedAt: row.finished_ts,
    result: row.result === null ? null : parse(row.result),
    error: row.error,
  }));
}

const parse = (text: string) => JSON.parse(text) as JsonValue;
