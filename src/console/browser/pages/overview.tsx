import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { listReports, type ReportKind } from '../api/reports.ts';
import { type Overview, readDays, readOverview } from '../api/server.ts';
import { formatBytes, formatCount, formatDuration } from '../components/format.ts';
import { Page, WhenLoaded } from '../components/layout.tsx';
import { Plot } from '../components/plot.tsx';
import { useLoaded } from '../shell/loading.ts';
import { addressOf } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';

/** Milliseconds between two readings. */
const interval = 5_000;

/** Number of readings in the plots: 20 minutes. */
const maxReadings = 240;

/** Shows live figures of the server. */
export function OverviewPage() {
  const { api } = useSession();
  const overview = useLoaded((signal) => readOverview(api, signal), [], interval);
  const readings = useReadings(overview.value);
  return (
    <Page title="Overview">
      <WhenLoaded loaded={overview}>
        {(newest) => (
          <>
            <Tiles overview={newest} />
            <LivePlots readings={readings} />
            <p class="soft">
              Hearth {newest.server_version} on Node {newest.node_version} with{' '}
              {newest.database === 'sqlite' ? 'SQLite' : 'PostgreSQL'}, running for{' '}
              {formatDuration(newest.now_ts - newest.started_ts)}.
            </p>
          </>
        )}
      </WhenLoaded>
    </Page>
  );
}

/** Collects the readings while the page is open, and begins again after a restart of the server. */
function useReadings(newest: Overview | undefined): readonly Overview[] {
  const readings = useRef<Overview[]>([]);
  const last = readings.current.at(-1);
  if (newest !== undefined && newest !== last) {
    if (last !== undefined && newest.started_ts !== last.started_ts) readings.current = [];
    readings.current = [...readings.current, newest].slice(-maxReadings);
  }
  return readings.current;
}

/** Shows the figures at the top: figures of the current day, and figures that need attention. */
function Tiles({ overview }: { readonly overview: Overview }) {
  const { api } = useSession();
  const today = useLoaded(async (signal) => {
    const day = new Date().toISOString().slice(0, 10);
    return (await readDays(api, day, day, signal)).at(-1);
  }, []);
  const reports = useLoaded(async (signal) => {
    const counts = (['event', 'user', 'room'] satisfies ReportKind[]).map(
      async (kind) => (await listReports(api, kind, { from: 0, limit: 1 }, signal)).total,
    );
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  }, []);
  const figures = today.value;
  const waiting = overview.federation.pending_pdus + overview.federation.pending_edus;
  return (
    <ul class="tiles">
      <Tile name="Users" page="users">
        {figures && formatCount(figures.users)}
      </Tile>
      <Tile name="Active today" page="statistics">
        {figures && formatCount(figures.active_users)}
      </Tile>
      <Tile name="Messages today" page="statistics">
        {figures && formatCount(figures.messages)}
      </Tile>
      <Tile name="Rooms" page="rooms">
        {figures && formatCount(figures.rooms)}
      </Tile>
      <Tile name="Open reports" page="reports">
        {reports.value !== undefined && formatCount(reports.value)}
      </Tile>
      <Tile name="Waiting for other servers" page="federation">
        {formatCount(waiting)}
      </Tile>
      <Tile name="Database" page="statistics">
        {figures && formatBytes(figures.database_bytes)}
      </Tile>
      <Tile name="Media" page="media">
        {figures && formatBytes(figures.media_bytes)}
      </Tile>
    </ul>
  );
}

interface TileProps {
  readonly name: string;
  /** Name of the page that the tile leads to. */
  readonly page: string;
  readonly children: ComponentChildren;
}

function Tile({ name, page, children }: TileProps) {
  return (
    <li>
      <a href={addressOf(page)}>
        <span>{name}</span>
        <strong>{children || '–'}</strong>
      </a>
    </li>
  );
}

function LivePlots({ readings }: { readonly readings: readonly Overview[] }) {
  const times = readings.map(({ now_ts: now }) => now);
  /** Returns how much a counter grows per second, for each reading. */
  const rate = (counter: (overview: Overview) => number) =>
    readings.map((reading, index) => {
      const last = readings[index - 1];
      if (last === undefined) return null;
      return ((counter(reading) - counter(last)) * 1000) / Math.max(1, reading.now_ts - last.now_ts);
    });
  const each = (value: (overview: Overview) => number | null) => readings.map(value);
  return (
    <div class="plots">
      <Plot
        title="Requests per second"
        times={times}
        format={formatRate}
        series={[
          { label: 'All', values: rate(({ requests }) => requests.answered) },
          { label: 'Of other servers', values: rate(({ requests }) => requests.federation) },
        ]}
      />
      <Plot
        title="Syncs"
        times={times}
        format={formatRate}
        series={[
          { label: 'Waiting', values: each(({ requests }) => requests.open_syncs) },
          { label: 'Answered per second', values: rate(({ requests }) => requests.syncs) },
        ]}
      />
      <Plot
        title="Events per second"
        times={times}
        format={formatRate}
        series={[
          { label: 'Local', values: rate(({ events }) => events.local) },
          { label: 'Of other servers', values: rate(({ events }) => events.remote) },
        ]}
      />
      <Plot
        title="Waiting for other servers"
        times={times}
        format={formatCount}
        series={[
          { label: 'Events', values: each(({ federation }) => federation.pending_pdus) },
          { label: 'EDUs', values: each(({ federation }) => federation.pending_edus) },
        ]}
      />
      <Plot
        title="Event loop lag"
        times={times}
        format={formatMilliseconds}
        series={[
          { label: 'Longest', values: each(({ process }) => process.event_loop_lag_ms.max) },
          { label: 'Mean', values: each(({ process }) => process.event_loop_lag_ms.mean) },
        ]}
      />
      <Plot
        title="Processor use"
        times={times}
        format={formatPercent}
        series={[
          // Milliseconds of work per second, divided by 10, are a percentage.
          { label: 'All threads', values: rate(({ process }) => process.cpu_ms / 10) },
          { label: 'Event loop', values: rate(({ process }) => process.event_loop_busy_ms / 10) },
        ]}
      />
      <Plot
        title="Memory"
        times={times}
        format={formatBytes}
        isBytes
        series={[
          { label: 'Process', values: each(({ process }) => process.memory_bytes) },
          { label: 'Heap', values: each(({ process }) => process.heap_bytes) },
        ]}
      />
    </div>
  );
}

const formatRate = (value: number) => (value >= 10 ? formatCount(Math.round(value)) : String(round(value)));
const formatMilliseconds = (value: number) => `${round(value)} ms`;
const formatPercent = (value: number) => `${round(value)} %`;

/** Rounds to one digit after the point. */
const round = (value: number) => Math.round(value * 10) / 10;
