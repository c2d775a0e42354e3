import type { Metrics } from '../kernel/observability/index.ts';

/**
 * The outcome of an attempt: the gateway accepted the notification, rejected the push key, or failed. Or why a pending
 * event was not sent: it no longer notifies the user, because it was read or redacted for instance (`superseded`), or
 * it waited too long for a gateway, or its notification could not be prepared (`dropped`).
 */
export type PushOutcomeName = 'accepted' | 'rejected' | 'failed' | 'superseded' | 'dropped';

/** Counts notifications that are sent to push gateways. */
export interface PushMetrics {
  /** @param count number of pending events with this outcome, by default 1 */
  countOutcome(outcome: PushOutcomeName, count?: number): void;
  /** Counts a notification that is sent again although the gateway may have received it. */
  countRepeat(): void;
}

/** @param metrics absent unless the configuration enables metrics */
export function openPushMetrics(metrics: Metrics | undefined): PushMetrics {
  if (!metrics) return { countOutcome: () => undefined, countRepeat: () => undefined };
  const outcomes = metrics.counter({
    name: 'server_push_notifications_total',
    help: 'Attempts to send notifications to push gateways, by outcome.',
    labelNames: ['outcome'],
  });
  for (const outcome of ['accepted', 'rejected', 'failed', 'superseded', 'dropped'])
    outcomes.inc({ outcome }, 0);
  const repeats = metrics.counter({
    name: 'server_push_repeats_total',
    help: 'Notifications that were sent again although the gateway may have received them: after a timeout or a restart.',
  });
  return {
    countOutcome: (outcome, count = 1) => outcomes.inc({ outcome }, count),
    countRepeat: () => repeats.inc(),
  };
}
