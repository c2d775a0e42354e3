import { accountDataSyncSource } from '../account-data/index.ts';
import type { Route } from '../kernel/http/index.ts';
import { Presence, PresenceEvents, presenceRoutes, presenceSyncSource } from '../presence/index.ts';
import { pushRuleRoutes, pushRulesSyncSource, Unread, unreadSyncSource } from '../push/index.ts';
import { Receipts, receiptRoutes, receiptSyncSource } from '../receipts/index.ts';
import {
  type DelayedSending,
  type ReadingRooms,
  type Rooms,
  roomRoutes,
  type ThirdPartyInviting,
} from '../rooms/index.ts';
import {
  eventStreamRoutes,
  openSync,
  type SetPresence,
  type SyncServices,
  slidingSyncRoutes,
  syncRoutes,
} from '../sync/index.ts';
import {
  ThreadSubscriptions,
  threadSubscriptionRoutes,
  threadSubscriptionSyncSource,
} from '../thread-subscriptions/index.ts';
import { Typing, typingRoutes, typingSyncSource } from '../typing/index.ts';
import type { Encryption } from './encryption.ts';
import type { Kernel } from './kernel.ts';
import { prejoinKeys } from './rooms.ts';
import type { Shutdown } from './shutdown.ts';
import type { Users } from './users.ts';

/** What happens in rooms besides their events (tier 3), and sync, which delivers all of it to clients. */
export interface Conversations {
  readonly receipts: Receipts;
  readonly typing: Typing;
  readonly presence: Presence;
  readonly threadSubscriptions: ThreadSubscriptions;
  readonly sync: SyncServices;
}

/** Upper bound of a page where the operator sets no limit: memory is limited. */
const maxEventsWithoutLimit = 1_000;

function maxEvents({ configuration }: Kernel): number {
  const { filter_timeline_limit } = configuration.sync;
  return filter_timeline_limit === -1 ? maxEventsWithoutLimit : filter_timeline_limit;
}

export async function startConversations(
  kernel: Kernel,
  users: Users,
  rooms: ReadingRooms,
  encryption: Pick<Encryption, 'syncSources'>,
  shutdown: Shutdown,
): Promise<Conversations> {
  const { engine } = rooms;
  const { accountData, pushRules } = users;
  const typing = new Typing({ ...kernel, roomStream: engine.stream, follows: kernel.role === 'reader' });
  const receipts = new Receipts({ ...kernel, engine, markers: fullyReadMarkers(users) });
  const threadSubscriptions = new ThreadSubscriptions(kernel);
  const unread = new Unread({
    ...kernel,
    engine,
    receipts,
    rules: pushRules,
    ignored: users.ignoredUsers,
    threads: threadSubscriptions.followed,
    enabled: kernel.configuration.push.push.enabled,
  });
  shutdown.add('unread counts', () => unread.stop());
  shutdown.add('typing', () => typing.close());
  const presence = await startPresence(kernel, users, rooms, shutdown);
  const sync = openSync({
    ...kernel,
    rooms,
    accountData,
    // The members of a sync response have this order.
    sources: [
      ...encryption.syncSources,
      pushRulesSyncSource(pushRules),
      accountDataSyncSource(accountData),
      receiptSyncSource(receipts),
      typingSyncSource(typing, engine.ignored),
      unreadSyncSource(unread),
      presenceSyncSource(presence.presence, presence.events),
      threadSubscriptionSyncSource(threadSubscriptions),
    ],
    prejoinKeys: prejoinKeys(kernel),
    excludedRooms: new Set(kernel.configuration.sync.exclude_rooms_from_sync),
    invitePolicy: users.invitePermissions,
    maxEvents: maxEvents(kernel),
    answerCacheDuration: kernel.configuration.caches.caches.sync_response_cache_duration,
  });
  return { receipts, typing, presence: presence.presence, threadSubscriptions, sync };
}

/** Starts presence, and makes its part of sync responses. */
async function startPresence(kernel: Kernel, users: Users, { engine }: ReadingRooms, shutdown: Shutdown) {
  const { configuration, userLimiter, log } = kernel;
  const { enabled, include_offline_users_on_sync } = configuration.presence.presence;
  const limits = userLimiter(configuration.rateLimits.rc_presence.per_user);
  const presence = new Presence({ ...kernel, log, engine, limiter: limits }, enabled);
  users.accounts.accounts.accountStream.subscribe(({ kind, userId }) => {
    if (kind === 'deactivated') presence.forget(userId);
  });
  await presence.start();
  shutdown.add('presence', () => presence.stop());
  const sources = { ...kernel, engine, presence, ignored: users.ignoredUsers };
  return { presence, events: new PresenceEvents(sources, include_offline_users_on_sync) };
}

/** Stores read markers as account data of rooms. Source: client-server API, "Fully read markers". */
function fullyReadMarkers({ accountData }: Users) {
  const key = (userId: string, roomId: string) => ({ userId, roomId, type: 'm.fully_read' });
  return {
    async find(userId: string, roomId: string): Promise<string | undefined> {
      const eventId = (await accountData.find(key(userId, roomId)))?.['event_id'];
      return typeof eventId === 'string' ? eventId : undefined;
    },
    set: (userId: string, roomId: string, eventId: string) =>
      accountData.set(key(userId, roomId), { event_id: eventId }),
  };
}

export function conversationRoutes(
  kernel: Kernel,
  users: Users,
  rooms: Rooms,
  { receipts, typing, presence, threadSubscriptions, sync }: Conversations,
  delayed: DelayedSending,
  thirdParties: ThirdPartyInviting,
): Route[] {
  const setPresence: SetPresence = (requester, state) => presence.beginSync(requester, state);
  return [
    ...roomRoutes(rooms, maxEvents(kernel), delayed, thirdParties),
    ...receiptRoutes(receipts),
    ...typingRoutes(typing, rooms.engine),
    ...presenceRoutes(presence, kernel.clock),
    ...pushRuleRoutes(users.pushRules),
    ...syncRoutes(
      sync.sync,
      (userId, filter) => users.filters.peek(userId, filter) ?? users.filters.resolve(userId, filter),
      setPresence,
      maxEvents(kernel),
    ),
    ...slidingSyncRoutes(sync, setPresence),
    ...threadSubscriptionRoutes({
      engine: rooms.engine,
      threads: threadSubscriptions,
    }),
    ...eventStreamRoutes(sync.eventStream, maxEvents(kernel)),
  ];
}
