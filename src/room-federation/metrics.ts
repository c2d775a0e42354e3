import type { Metrics } from '../kernel/observability/index.ts';
import type { StoredEvent } from '../room-engine/index.ts';

/** The state of the staging area. */
export interface Waiting {
  readonly count: number;
  /** For how many milliseconds the oldest event has been staged. */
  readonly oldestAge: number;
}

/** Seconds. */
const buckets = [0.005, 0.02, 0.1, 0.5, 1, 5, 20, 60, 120];

/** Metrics of events from remote servers. */
export interface IncomingMetrics {
  /** Counts an event that was placed, or rejected by the authorization rules. */
  placed(stored: StoredEvent): void;
  /** Counts events of transactions that failed the checks on receipt. */
  refused(count: number): void;
  /** Counts an event that was given up after the last attempt. */
  dropped(): void;
  /** @param milliseconds how long processing an event took */
  took(milliseconds: number): void;
}

const uncounted: IncomingMetrics = {
  placed: () => undefined,
  refused: () => undefined,
  dropped: () => undefined,
  took: () => undefined,
};

export function incomingMetrics(metrics: Metrics | undefined, waiting: () => Waiting): IncomingMetrics {
  if (!metrics) return uncounted;
  metrics.gauge({
    name: 'server_federation_incoming_staged_events',
    help: 'Events of other servers that are staged and not yet processed',
    collect() {
      this.set(waiting().count);
    },
  });
  metrics.gauge({
    name: 'server_federation_incoming_lag_seconds',
    help: 'How long the oldest staged event of another server has waited',
    collect() {
      this.set(waiting().oldestAge / 1_000);
    },
  });
  const events = metrics.counter({
    name: 'server_federation_incoming_events_total',
    help: 'Events of other servers by outcome',
    labelNames: ['outcome'],
  });
  const times = metrics.histogram({
    name: 'server_federation_incoming_processing_seconds',
    help: 'How long it took to process an event of another server',
    buckets,
  });
  return {
    placed: ({ rejected, softFailed }) =>
      events.inc({ outcome: rejected ? 'rejected' : softFailed ? 'soft_failed' : 'accepted' }),
    refused: (count) => events.inc({ outcome: 'refused' }, count),
    dropped: () => events.inc({ outcome: 'given_up' }),
    took: (milliseconds) => times.observe(milliseconds / 1_000),
  };
}
