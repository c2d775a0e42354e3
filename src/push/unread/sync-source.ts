import { whenReady } from '../../kernel/when-ready.ts';
import type { SyncSource } from '../../sync-contract/index.ts';
import type { UnreadCounts } from './tally.ts';
import type { Unread } from './unread.ts';

/**
 * Unread counts in syncs. They follow events and receipts, and have no facts of their own.
 * Source: client-server API, `GET /sync`, "Unread Notification Counts"; MSC4186, `RoomResult`.
 */
export const unreadSyncSource = (unread: Unread): SyncSource => ({
  name: 'unread counts',
  follow: () => undefined,
  roomCounts: {
    fieldsText(userId, roomId, upTo, threadsField) {
      return whenReady(unread.counts(userId, roomId, upTo), (counts) => fieldsTextOf(counts, threadsField));
    },
    fields(userId, roomId, upTo) {
      return whenReady(unread.counts(userId, roomId, upTo), fieldsOf);
    },
  },
});

const fieldsOf = ({ notification_count, highlight_count }: UnreadCounts) => ({
  notification_count,
  highlight_count,
});

function fieldsTextOf(
  { notification_count, highlight_count, threads }: UnreadCounts,
  threadsField: string | undefined,
): string {
  let notifications = notification_count;
  let highlights = highlight_count;
  if (threadsField === undefined) {
    for (const thread of threads.values()) {
      notifications += thread.notification_count;
      highlights += thread.highlight_count;
    }
  }
  const threadText =
    threadsField !== undefined && threads.size > 0
      ? `,"${threadsField}":${JSON.stringify(Object.fromEntries(threads))}`
      : '';
  return `,"unread_notifications":{"notification_count":${notifications},"highlight_count":${highlights}}${threadText}`;
}
