import type { ExtensionRequests } from '../request.ts';
import type { ThreadSubscriptionSource } from '../sources.ts';
import type { ExtensionAnswer, ExtensionContext } from './extension.ts';

/** Under this name clients ask for it. */
export const threadSubscriptions = 'io.element.msc4308.thread_subscriptions';

/** How many changes one answer holds by default, and at most. */
const [usualChanges, maxChanges] = [100, 400];

/** Which threads the user has begun or ceased to follow. Source: MSC4308. */
export async function threadSubscriptionsExtension(
  source: ThreadSubscriptionSource,
  { userId, since, upTo }: ExtensionContext,
  { limit }: NonNullable<ExtensionRequests[typeof threadSubscriptions]>,
): Promise<ExtensionAnswer> {
  const range = { after: since, upTo, limit: Math.min(limit ?? usualChanges, maxChanges) };
  const changes = await source.changes(userId, range);
  return {
    name: threadSubscriptions,
    text: JSON.stringify({
      ...changes?.sections,
      ...(changes?.older !== undefined && { prev_batch: changes.older }),
    }),
    isNews: changes !== undefined,
  };
}
