import type { Job } from './job.ts';

/** The status of a job, as responses of the admin API name it. */
export type JobStatus = 'scheduled' | 'active' | 'complete' | 'cancelled' | 'failed';

const statusAtEnd = { done: 'complete', cancelled: 'cancelled', failed: 'failed' } as const;

/**
 * Returns the status of a job.
 * @param isActive whether a job that has not ended is `active`, and not `scheduled`; by default from its first attempt
 * on, also while it waits for the next one
 */
export function jobStatus(
  job: Pick<Job, 'state' | 'running' | 'attempts'>,
  isActive: boolean = job.running || job.attempts > 0,
): JobStatus {
  if (job.state !== 'waiting') return statusAtEnd[job.state];
  return isActive ? 'active' : 'scheduled';
}

/** Returns the error message of a job that has failed too often to be tried again; `undefined` for all other jobs. */
export const jobFailure = ({ state, error }: Pick<Job, 'state' | 'error'>): string | undefined =>
  state === 'failed' ? (error ?? 'unknown') : undefined;
