import type { Metrics } from '../kernel/observability/index.ts';
import type { StoredEvent } from '../room-engine/index.ts';

/** The state of the staging area. */
export interface StagingState {
  readonly count: number;
  /** Milliseconds since the oldest staged event was staged. */
  readonly oldestAge: number;
}

/** Upper bounds of the buckets of processing times, in seconds. */
const buckets = [0.005, 0.02, 0.1, 0.5, 1, 5, 20, 60, 120];

/** Metrics of events from remote servers. */
export interface IncomingMetrics {
  /** Counts an event as accepted, soft-failed or rejected. */
  placed(stored: StoredEvent): void;
  /** Counts events of transactions that were not accepted. */
  refused(count: number): void;
  /** Counts an event that was dropped after its last failed attempt. */
  dropped(): void;
  /** @param milliseconds how long processing an event took */
  recordDuration(milliseconds: number): void;
}

const uncounted: IncomingMetrics = {
  placed: () => undefined,
  refused: () => undefined,
  dropped: () => undefined,
  recordDuration: () => undefined,
};

/** Registers the metrics of received events. Returns counters that do nothing where metrics are disabled. */
export function incomingMetrics(
  metrics: Metrics | undefined,
  stagingState: () => StagingState,
): IncomingMetrics {
  if (!metrics) return uncounted;
  metrics.gauge({
    name: 'server_federation_incoming_staged_events',
    help: 'Events of other servers that are staged and not yet processed',
    collect() {
      this.set(stagingState().count);
    },
  });
  metrics.gauge({
    name: 'server_federation_incoming_lag_seconds',
    help: 'Seconds for which the oldest event of another server has been staged',
    collect() {
      this.set(stagingState().oldestAge / 1_000);
    },
  });
  const events = metrics.counter({
    name: 'server_federation_incoming_events_total',
    help: 'Events of other servers by outcome',
    labelNames: ['outcome'],
  });
  const times = metrics.histogram({
    name: 'server_federation_incoming_processing_seconds',
    help: 'Seconds that it took to process an event of another server',
    buckets,
  });
  return {
    placed: ({ rejected, softFailed }) =>
      events.inc({ outcome: rejected ? 'rejected' : softFailed ? 'soft_failed' : 'accepted' }),
    refused: (count) => events.inc({ outcome: 'refused' }, count),
    dropped: () => events.inc({ outcome: 'given_up' }),
    recordDuration: (milliseconds) => times.observe(milliseconds / 1_000),
  };
}
