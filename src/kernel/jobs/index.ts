/** Durable jobs: scheduled in a transaction, run at least once. */

export type { Job, JobAttempt, JobHandler, JobProgress, JobRequest, JobState } from './job.ts';
export { type JobStatus, jobFailure, jobStatus } from './job-status.ts';
export { Jobs, type JobsOptions } from './jobs.ts';
export type { JobFilter } from './listing.ts';
export { reportJobs } from './metrics.ts';
export { jobMigrations } from './migrations/index.ts';
