import { Type } from 'typebox';
import type { SenderStatus } from '../../federation/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type RequestCounts, type Route, route } from '../../kernel/http/index.ts';
import type { ProcessReading } from '../../kernel/observability/index.ts';
import { ownSoftware } from '../../kernel/outbound/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';

export interface OverviewDeps {
  readonly serverName: string;
  readonly clock: Clock;
  readonly databaseKind: string;
  readonly requests: RequestCounts;
  readonly processReading: ProcessReading;
  readonly sender: { readonly status: SenderStatus };
  readonly engine: Pick<RoomReader, 'stream'>;
}

const count = Type.Integer();
const counts = Type.Record(Type.String(), count);
const nullableNumber = Type.Union([Type.Number(), Type.Null()]);

const response = Type.Object({
  server_name: Type.String(),
  server_version: Type.String(),
  node_version: Type.String(),
  database: Type.String(),
  now_ts: count,
  started_ts: count,
  requests: Type.Object({
    answered: count,
    federation: count,
    syncs: count,
    failed: count,
    open: count,
    open_syncs: count,
  }),
  events: Type.Object({ local: count, remote: count }),
  federation: Type.Object({
    destinations: counts,
    pending_pdus: count,
    pending_edus: count,
    longest_wait_ms: Type.Number(),
  }),
  process: Type.Object({
    cpu_ms: Type.Number(),
    memory_bytes: count,
    heap_bytes: count,
    event_loop_busy_ms: Type.Number(),
    event_loop_lag_ms: Type.Object({ mean: nullableNumber, max: nullableNumber }),
  }),
});

/**
 * Serves live figures of the server: counters since its start, the number of open requests, and the data that is
 * pending for other servers. Clients compute rates from the counters. The event loop lag is measured over the last
 * seconds.
 */
export function overviewRoute(deps: OverviewDeps): Route {
  const { serverName, clock, requests, processReading, sender } = deps;
  const events = countEvents(deps);
  return route(
    {
      operationId: 'getOverview',
      method: 'GET',
      path: '/_server/admin/v1/overview',
      auth: 'admin',
      response,
    },
    () => {
      const usage = processReading.read();
      const { destinations, pendingPdus, pendingEdus, longestWait } = sender.status;
      return {
        server_name: serverName,
        server_version: ownSoftware().version,
        node_version: process.versions.node,
        database: deps.databaseKind,
        now_ts: clock.now(),
        started_ts: usage.startedAt,
        requests: {
          answered: requests.answered,
          federation: requests.federation,
          syncs: requests.syncs,
          failed: requests.failed,
          open: requests.open.other,
          open_syncs: requests.open.sync,
        },
        events,
        federation: {
          destinations,
          pending_pdus: pendingPdus,
          pending_edus: pendingEdus,
          longest_wait_ms: longestWait,
        },
        process: {
          cpu_ms: usage.cpu,
          memory_bytes: usage.residentMemory,
          heap_bytes: usage.heap,
          event_loop_busy_ms: usage.busy,
          event_loop_lag_ms: { mean: usage.lag?.mean ?? null, max: usage.lag?.max ?? null },
        },
      };
    },
  );
}

/** Counts the events that are added to timelines, by origin. */
function countEvents({ engine, serverName }: Pick<OverviewDeps, 'engine' | 'serverName'>) {
  const events = { local: 0, remote: 0 };
  engine.stream.subscribe(({ onTimeline, stored }) => {
    if (!onTimeline) return;
    if (stored.event.sender.endsWith(`:${serverName}`)) events.local += 1;
    else events.remote += 1;
  });
  return events;
}
