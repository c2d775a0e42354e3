import type { Metrics } from '../kernel/observability/index.ts';
import type { StoredEvent } from '../room-engine/index.ts';

/** What is shown of the events that wait. */
export interface Waiting {
  readonly count: number;
  /** For how many milliseconds the oldest one has waited. */
  readonly oldestAge: number;
}

/** Seconds. */
const buckets = [0.005, 0.02, 0.1, 0.5, 1, 5, 20, 60, 120];

/** What operators see of events from other servers. */
export interface IncomingMetrics {
  /** An event got its place, or was refused one by the rules. */
  placed(stored: StoredEvent): void;
  /** Events of transactions that were not taken. */
  refused(count: number): void;
  /** An event was given up. */
  dropped(): void;
  /** @param milliseconds how long it took to give an event its place */
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
    help: 'Events of other servers that wait for their places',
    collect() {
      this.set(waiting().count);
    },
  });
  metrics.gauge({
    name: 'server_federation_incoming_lag_seconds',
    help: 'How long the oldest event of another server has waited for its place',
    collect() {
      this.set(waiting().oldestAge / 1_000);
    },
  });
  const events = metrics.counter({
    name: 'server_federation_incoming_events_total',
    help: 'Events of other servers by what became of them',
    labelNames: ['outcome'],
  });
  const times = metrics.histogram({
    name: 'server_federation_incoming_processing_seconds',
    help: 'How long it took to give an event of another server its place',
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
