import type { Metrics } from '../../observability/index.ts';
import type { Observer } from '../endpoints/endpoint.ts';
import { pathsOf } from '../routing/route.ts';
import type { RequestCounts } from './request-counts.ts';

/** Upper bounds of the histogram's buckets in seconds: from a cached answer to a long poll. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** Exposes open requests as a metric. @returns a function that times requests by operation and status */
export function observeRequests(metrics: Metrics, counts: RequestCounts): Observer {
  metrics.gauge({
    name: 'server_http_open_requests',
    help: 'Requests that are being answered: syncs, which are long polls, and all others.',
    labelNames: ['kind'],
    collect() {
      this.set({ kind: 'sync' }, counts.open.sync);
      this.set({ kind: 'other' }, counts.open.other);
    },
  });
  return timeRequests(metrics);
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
