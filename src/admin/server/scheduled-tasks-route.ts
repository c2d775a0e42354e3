import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { Job, Jobs } from '../../kernel/jobs/index.ts';

/** Number of jobs that are read at once, and maximum number of jobs in a response. */
const [jobsAtOnce, maxJobs] = [500, 10_000];

const statuses = ['scheduled', 'active', 'complete', 'cancelled', 'failed'] as const;

/** Lists the jobs of this server. */
export function scheduledTasksRoute(jobs: Jobs): Route {
  return route(
    {
      method: 'GET',
      path: '/_server/admin/v1/scheduled_tasks',
      auth: 'admin',
      query: Type.Object({
        action_name: Type.Optional(Type.String()),
        resource_id: Type.Optional(Type.String()),
        status: Type.Optional(Type.Union(statuses.map((status) => Type.Literal(status)))),
        max_timestamp: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
      }),
      response: Type.Object({ scheduled_tasks: Type.Array(Type.Object({ id: Type.String() })) }),
    },
    async ({ query }) => {
      const found: ReturnType<typeof taskJson>[] = [];
      const filter = {
        ...(query.action_name !== undefined && { kind: withoutNul(query.action_name) }),
        ...(query.resource_id !== undefined && { key: withoutNul(query.resource_id) }),
        limit: jobsAtOnce,
      };
      for (let after = 0; found.length < maxJobs; ) {
        const page = await jobs.list({ ...filter, after });
        found.push(
          ...page
            .map(taskJson)
            .filter(({ status }) => query.status === undefined || status === query.status)
            .filter(({ timestamp_ms }) => timestamp_ms < (query.max_timestamp ?? Number.POSITIVE_INFINITY)),
        );
        if (page.length < jobsAtOnce) break;
        after = page.at(-1)?.id ?? after;
      }
      return { scheduled_tasks: found.slice(0, maxJobs) };
    },
  );
}

const withoutNul = (text: string) => text.replaceAll('\0', '');

/** Returns a job for the response, without its payload, which may contain secrets. */
function taskJson(job: Job) {
  const status = statusOf(job);
  return {
    id: String(job.id),
    action: job.kind,
    status,
    timestamp_ms: job.finishedAt ?? (status === 'scheduled' ? job.runAt : job.createdAt),
    resource_id: job.key,
    error: job.error,
  };
}

function statusOf({ state, running }: Job): (typeof statuses)[number] {
  if (state === 'done') return 'complete';
  if (state === 'failed') return 'failed';
  return running ? 'active' : 'scheduled';
}
