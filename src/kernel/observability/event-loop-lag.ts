import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Metrics } from './metrics.ts';

/** Percentiles that the metric shows. */
const percentiles = [50, 90, 99, 100];

/**
 * Exposes the event loop lag since the last collection as a metric, in seconds.
 * @returns a function that stops the measurement
 */
export function observeEventLoop(metrics: Metrics): () => void {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  metrics.gauge({
    name: 'server_event_loop_lag_seconds',
    help: 'Event loop lag since the last collection',
    labelNames: ['percentile'],
    collect() {
      for (const percentile of percentiles) {
        this.set({ percentile: String(percentile) }, delay.percentile(percentile) / 1e9);
      }
      delay.reset();
    },
  });
  return () => delay.disable();
}
