import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { type Job, type JobStatus, type Jobs, jobStatus } from '../../kernel/jobs/index.ts';
import { withoutNul } from '../paging/contains.ts';
import { direction } from '../paging/page-query.ts';
import { nullableText } from '../response-fields.ts';

/** Maximum number of jobs that one statement reads. */
const jobsAtOnce = 500;

/** Maximum number of jobs in a response. */
const maxJobs = 10_000;

const statuses = ['scheduled', 'active', 'complete', 'cancelled', 'failed'] as const satisfies JobStatus[];

/** A parameter that may be repeated. It selects the jobs that have one of its values. */
const anyStatus = Type.Array(Type.Union(statuses.map((status) => Type.Literal(status))), {
  maxItems: 100,
  default: [],
});

const task = Type.Object({
  id: Type.String(),
  action: Type.String(),
  status: Type.String(),
  /**
   * Milliseconds since the epoch: when a finished job has finished, when a scheduled job is due, and when an active job
   * was added.
   */
  timestamp_ms: Type.Integer(),
  resource_id: nullableText,
  /** The value that a finished job has returned. */
  result: Type.Unknown(),
  error: nullableText,
  progress: Type.Union([
    Type.Object({ done: Type.Integer(), total: Type.Union([Type.Integer(), Type.Null()]) }),
    Type.Null(),
  ]),
});

/** Lists the jobs of this server, the oldest first unless `dir` is `b`. */
export function scheduledTasksRoute(jobs: Jobs): Route {
  return route(
    {
      operationId: 'listScheduledTasks',
      method: 'GET',
      path: '/_server/admin/v1/scheduled_tasks',
      auth: 'admin',
      query: Type.Object({
        action_name: Type.Array(Type.String(), { maxItems: 100, default: [] }),
        resource_id: Type.Optional(Type.String()),
        status: anyStatus,
        // The code of the reference server reads `job_status`, its documentation says `status`: both are accepted.
        job_status: anyStatus,
        max_timestamp: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
        limit: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: maxJobs }),
        dir: Type.Optional(direction),
      }),
      response: Type.Object({ scheduled_tasks: Type.Array(task) }),
    },
    async ({ query }) => {
      const limit = Math.min(query.limit, maxJobs);
      const requestedStatuses = query.status.length > 0 ? query.status : query.job_status;
      const listedJobs: Job[] = [];
      const filter = {
        ...(query.action_name.length > 0 && { kind: query.action_name.map(withoutNul) }),
        ...(query.resource_id !== undefined && { key: withoutNul(query.resource_id) }),
        ...(requestedStatuses.length > 0 && { statuses: requestedStatuses }),
        ...(query.max_timestamp !== undefined && { before: query.max_timestamp }),
        newestFirst: query.dir === 'b',
      };
      while (listedJobs.length < limit) {
        const count = Math.min(jobsAtOnce, limit - listedJobs.length);
        const last = listedJobs.at(-1);
        const page = await jobs.list({ ...filter, ...(last && { after: last.id }), limit: count });
        listedJobs.push(...page);
        if (page.length < count) break;
      }
      return { scheduled_tasks: listedJobs.map(taskJson) };
    },
  );
}

/** Returns a job for the response, without its payload, which may contain secrets. */
function taskJson(job: Job) {
  // Only a running job is active: a job that waits for its next attempt is scheduled.
  const status = jobStatus(job, job.running);
  return {
    id: String(job.id),
    action: job.kind,
    status,
    timestamp_ms: job.finishedAt ?? (status === 'scheduled' ? job.runAt : job.createdAt),
    resource_id: job.key,
    result: job.result,
    error: job.error,
    progress: job.progress,
  };
}
