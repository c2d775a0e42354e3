import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Metrics } from './metrics.ts';

/** Percentiles of the lag that are shown. */
const percentiles = [50, 90, 99, 100];

/**
 * Shows how late the event loop was since the last look, in seconds.
 * @returns what stops the measuring
 */
export function observeEventLoop(metrics: Metrics): () => void {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  metrics.gauge({
    name: 'server_event_loop_lag_seconds',
    help: 'How late the event loop was since the last look',
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
