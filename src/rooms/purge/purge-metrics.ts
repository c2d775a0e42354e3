import type { Metrics } from '../../kernel/observability/index.ts';

/** Why messages were deleted: by a request of an administrator, or by the retention policy of their room. */
export type PurgeCause = 'administrator' | 'retention';

/** Counts messages that purges of history and retention delete, and state groups that the cleanup deletes. */
export interface PurgeMetrics {
  /** Counts deleted messages. */
  deleted(cause: PurgeCause, count: number): void;
  /** Counts state groups that were deleted because nothing referred to them. */
  groupsDeleted(count: number): void;
}

/**
 * Opens the counters of purges.
 * @param metrics absent when the configuration does not enable metrics; then nothing is counted
 */
export function openPurgeMetrics(metrics: Metrics | undefined): PurgeMetrics {
  if (!metrics) return { deleted: () => undefined, groupsDeleted: () => undefined };
  const events = metrics.counter({
    name: 'server_purged_events_total',
    help: 'Messages that were deleted by purges of history, by cause.',
    labelNames: ['cause'],
  });
  for (const cause of ['administrator', 'retention']) events.inc({ cause }, 0);
  const groups = metrics.counter({
    name: 'server_removed_state_groups_total',
    help: 'State groups that were removed because nothing referred to them.',
  });
  return {
    deleted: (cause, count) => events.inc({ cause }, count),
    groupsDeleted: (count) => groups.inc(count),
  };
}
