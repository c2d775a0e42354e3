import type { Metrics } from '../../observability/index.ts';
import { Reply, type Route, route } from '../routing/route.ts';

/** Serves the metrics on listeners with the resource `metrics`. */
export function metricsRoute(metrics: Metrics): Route {
  return route(
    { method: 'GET', path: ['/_server/metrics', '/metrics'], auth: 'none' },
    async () => new Reply(200, await metrics.render(), { 'Content-Type': metrics.contentType }),
  );
}
