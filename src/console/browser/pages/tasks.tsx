import { backgroundUpdates, enableBackgroundUpdates, listTasks, type Task } from '../api/server.ts';
import { Action } from '../components/dialog.tsx';
import { Choice } from '../components/fields.tsx';
import { formatCount } from '../components/format.ts';
import { Badge, JobProgress, Page, Section, WhenLoaded } from '../components/layout.tsx';
import { type Column, Table } from '../components/table.tsx';
import { Time } from '../components/times.tsx';
import { useLoaded } from '../shell/loading.ts';
import { type PageAddress, setQuery } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';

/** Milliseconds between two requests for the jobs. */
const interval = 5_000;

/** Maximum number of jobs that are shown. */
const maxShown = 500;

const states = [
  ['', 'All jobs'],
  ['active', 'Running jobs'],
  ['scheduled', 'Scheduled jobs'],
  ['complete', 'Completed jobs'],
  ['cancelled', 'Cancelled jobs'],
  ['failed', 'Failed jobs'],
] as const;

const badges = {
  active: ['accent', 'Running'],
  scheduled: ['plain', 'Scheduled'],
  complete: ['good', 'Complete'],
  cancelled: ['plain', 'Cancelled'],
  failed: ['bad', 'Failed'],
} as const;

const columns: readonly Column<Task>[] = [
  {
    title: 'Job',
    cell: (task) => (
      <span class="name">
        <strong>{task.action.replaceAll(/[-_.]/g, ' ').replace('/', ': ')}</strong>
        {task.resource_id !== null && <small>{task.resource_id}</small>}
      </span>
    ),
  },
  {
    title: 'State',
    cell: ({ status }) => <Badge kind={badges[status][0]}>{badges[status][1]}</Badge>,
  },
  { title: 'Progress', cell: (task) => <TaskProgress task={task} /> },
  { title: 'Time', isShort: true, cell: (task) => <Time at={task.timestamp_ms} /> },
];

/** Lists background jobs, with the progress of running ones. */
export function TasksPage({ address }: { readonly address: PageAddress }) {
  const { api } = useSession();
  const { state = '' } = address.query;
  const tasks = useLoaded(
    (signal) => listTasks(api, { status: state, limit: maxShown + 1 }, signal),
    [state],
    interval,
  );
  return (
    <Page title="Background jobs">
      <Updates />
      <div class="filters">
        <Choice
          label="Show"
          value={state}
          options={states}
          onChange={(value) => setQuery(address, { state: value }, false)}
        />
      </div>
      <WhenLoaded loaded={tasks}>
        {(rows) => (
          <>
            <Table
              caption="Background jobs"
              columns={columns}
              rows={rows.slice(0, maxShown)}
              keyOf={({ id }) => id}
              empty="There are no such jobs."
            />
            {rows.length > maxShown && <p class="soft">and older ones.</p>}
          </>
        )}
      </WhenLoaded>
    </Page>
  );
}

function TaskProgress({ task }: { readonly task: Task }) {
  const { progress, status, error } = task;
  const label = `Progress of ${task.action}`;
  if (error !== null && status !== 'complete') return <span class="bad-text">{error}</span>;
  if (status !== 'active') return progress ? <>{formatCount(progress.done)} done</> : null;
  return <JobProgress label={label} progress={progress} />;
}

/** Background updates: jobs that change many rows of the database. Administrators can pause them. */
function Updates() {
  const { api } = useSession();
  const updates = useLoaded((signal) => backgroundUpdates(api, signal), [], interval);
  const set = (enabled: boolean) => async () => {
    await enableBackgroundUpdates(api, enabled);
    return enabled ? 'Background updates continue.' : 'Background updates are paused.';
  };
  return (
    <Section title="Background updates">
      <WhenLoaded loaded={updates}>
        {({ enabled, current_updates: current }) => (
          <div class="row">
            <span>
              {enabled ? <Badge kind="good">On</Badge> : <Badge kind="warning">Paused</Badge>}{' '}
              {Object.values(current)
                .map(({ name, total_item_count: rows }) => `${name}: ${formatCount(rows)} rows`)
                .join(', ') || 'None is running.'}
            </span>
            <Action
              label={enabled ? 'Pause' : 'Continue'}
              about={enabled ? 'Pause background updates' : 'Continue background updates'}
              title={enabled ? 'Pause background updates?' : 'Continue background updates?'}
              action={set(!enabled)}
              onDone={updates.reload}
            >
              <p>They change many rows of the database in small steps, and may slow the server down.</p>
            </Action>
          </div>
        )}
      </WhenLoaded>
    </Section>
  );
}
