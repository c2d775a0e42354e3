import type { Metrics } from '../../observability/index.ts';
import type { Observer } from '../routing/endpoint.ts';
import { pathsOf, type Route } from '../routing/route.ts';

/** Bounds in seconds: from a cached answer to a long poll. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** Requests that wait for something to happen: syncs and event streams. */
const longPoll = /\/(sync|events)$/;

export interface RequestObserver {
  readonly began: (route: Route) => void;
  readonly ended: Observer;
}

/** Counts and times requests by operation and status, and counts those that are open: syncs apart from others. */
export function observeRequests(metrics: Metrics): RequestObserver {
  const ended = timeRequests(metrics);
  const kinds = new Map<Route, 'sync' | 'other'>();
  const open = { sync: 0, other: 0 };
  const kindOf = (route: Route) => {
    let kind = kinds.get(route);
    if (!kind) {
      kind = pathsOf(route).some((path) => longPoll.test(path)) ? 'sync' : 'other';
      kinds.set(route, kind);
    }
    return kind;
  };
  metrics.gauge({
    name: 'server_http_open_requests',
    help: 'Requests that are being answered: syncs, which wait for news, and all others.',
    labelNames: ['kind'],
    collect() {
      this.set({ kind: 'sync' }, open.sync);
      this.set({ kind: 'other' }, open.other);
    },
  });
  return {
    began: (route) => {
      open[kindOf(route)] += 1;
    },
    ended: (route, exchange, milliseconds) => {
      open[kindOf(route)] -= 1;
      ended(route, exchange, milliseconds);
    },
  };
}

function timeRequests(metrics: Metrics): Observer {
  const histogram = metrics.histogram({
    name: 'server_http_request_duration_seconds',
    help: 'Time from the head of a request to the end of its answer',
    labelNames: ['method', 'operation', 'status'],
    buckets,
  });
  return (route, exchange, milliseconds) => {
    const { method, operationId } = route.contract;
    histogram.observe(
      {
        method,
        operation: operationId ?? pathsOf(route)[0]!,
        status: String(exchange.response.statusCode),
      },
      milliseconds / 1000,
    );
  };
}
