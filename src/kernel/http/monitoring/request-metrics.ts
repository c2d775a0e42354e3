import type { Metrics } from '../../observability/index.ts';
import type { Observer } from '../routing/endpoint.ts';
import { pathsOf } from '../routing/route.ts';

/** Bounds in seconds: from a cached answer to a long poll. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Counts and times requests by operation and status. */
export function observeRequests(metrics: Metrics): Observer {
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
