import { Type } from 'typebox';
import { defineExtension, type SyncSource } from '../sync-contract/index.ts';
import type { ThreadSubscriptions } from './thread-subscriptions.ts';

/** Number of changes in a response when the request sets no limit. */
const defaultChanges = 100;

/** Maximum number of changes in a response. */
const maxChanges = 400;

/** Thread subscriptions in sliding sync. Source: MSC4308. */
export const threadSubscriptionSyncSource = (threads: ThreadSubscriptions): SyncSource => ({
  name: 'thread subscriptions',
  follow: (feeds) => feeds.followUsers(threads.threadStream, ({ userId }) => [userId]),
  extension: defineExtension({
    name: 'io.element.msc4308.thread_subscriptions',
    request: Type.Object({
      limit: Type.Optional(Type.Union([Type.Integer({ minimum: 1 }), Type.Null()])),
    }),
    async answer(userId, range, { limit }) {
      const bounded = Math.min(limit ?? defaultChanges, maxChanges);
      const changes = await threads.changes(userId, { ...range, limit: bounded });
      return {
        text: JSON.stringify({
          ...changes?.sections,
          ...(changes?.older !== undefined && { prev_batch: changes.older }),
        }),
        hasNewData: changes !== undefined,
      };
    },
  }),
});
