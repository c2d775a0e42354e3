import type { Route } from '../kernel/http/index.ts';
import { openPresence, type Presence, type PresenceRouting } from '../presence/index.ts';
import { openUnread } from '../push/index.ts';
import { openReceipts, type Receipts } from '../receipts/index.ts';
import type { ReadingRooms } from '../rooms/index.ts';
import {
  eventStreamRoutes,
  openSync,
  type ReadFilter,
  type SetPresence,
  type SyncServices,
  slidingSyncRoutes,
  syncRoutes,
} from '../sync/index.ts';
import { openThreadSubscriptions, type ThreadSubscriptions } from '../thread-subscriptions/index.ts';
import { openTyping, type Typing } from '../typing/index.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import { prejoinStateKeys } from './rooms.ts';
import type { Users } from './users.ts';

/**
 * Receipts, typing, presence, thread subscriptions and notifications, and the sync that delivers all these and events
 * to clients.
 */
export interface Conversations {
  readonly receipts: Receipts;
  readonly typing: Typing;
  readonly presence: Presence;
  readonly threads: ThreadSubscriptions;
  /** Finds the users whom an event notifies, and counts unread notifications. */
  readonly push: Pick<ReturnType<typeof openUnread>, 'evaluation' | 'eventNotifications' | 'badgeCounts'>;
  readonly sync: SyncServices;
}

/**
 * Maximum number of events in a page when `filter_timeline_limit` sets no limit. It bounds the memory for a response.
 */
const maxEventsWithoutLimit = 1_000;

/** Returns the maximum number of events in a page of a timeline. */
export function maxEventsPerPage({ configuration }: Kernel): number {
  const { filter_timeline_limit } = configuration.sync;
  return filter_timeline_limit === -1 ? maxEventsWithoutLimit : filter_timeline_limit;
}

/**
 * Opens the slices of `Conversations`.
 * @param opened the slices that were opened before; their sync sources are used
 */
export async function startConversations(
  kernel: Kernel,
  users: Users,
  rooms: ReadingRooms,
  opened: OpenedSlices,
  routing?: PresenceRouting,
): Promise<Conversations> {
  const { configuration } = kernel;
  const { engine } = rooms;
  const deps = { ...kernel, engine, ignored: users.ignoredUsers };
  const { receipts } = opened.add('receipts', openReceipts({ ...deps, markers: fullyReadMarkers(users) }));
  const { typing } = opened.add('typing', openTyping({ ...deps, follows: kernel.role === 'reader' }));
  const { threads } = opened.add('thread subscriptions', openThreadSubscriptions(deps));
  const unread = openUnread({
    ...deps,
    ignored: users.ignoredUsers,
    receipts,
    rules: users.pushRules,
    threads: threads.followed,
    invitePolicy: users.invitePermissions,
    options: configuration.push.push,
  });
  const push = opened.add('unread counts', unread);
  const limiter = kernel.userLimiter(configuration.rateLimits.rc_presence.per_user);
  const { presence } = opened.add(
    'presence',
    await openPresence({
      ...deps,
      limiter,
      routing,
      options: configuration.presence.presence,
      follows: kernel.role === 'reader',
    }),
  );
  users.accounts.accounts.accountStream.subscribe(({ kind, userId }) => {
    if (kind === 'deactivated') presence.forget(userId);
  });
  const sync = openSync({
    ...kernel,
    rooms,
    accountData: users.accountData,
    sources: opened.syncSources,
    prejoinStateKeys: prejoinStateKeys(kernel),
    excludedRooms: new Set(configuration.sync.exclude_rooms_from_sync),
    invitePolicy: users.invitePermissions,
    maxTimelineEvents: maxEventsPerPage(kernel),
    answerCacheDuration: configuration.caches.caches.sync_response_cache_duration,
  });
  opened.add('sync', { routes: routesOfSync(kernel, users, sync, presence) });
  return { receipts, typing, presence, threads, push, sync };
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

function routesOfSync(kernel: Kernel, { filters }: Users, sync: SyncServices, presence: Presence): Route[] {
  const setPresence: SetPresence = (requester, state) => presence.beginSync(requester, state);
  const readFilter: ReadFilter = (userId, filter) =>
    filters.peek(userId, filter) ?? filters.resolve(userId, filter);
  return [
    ...syncRoutes(sync.sync, readFilter, setPresence, maxEventsPerPage(kernel)),
    ...slidingSyncRoutes(sync, setPresence),
    ...eventStreamRoutes(sync.eventStream, maxEventsPerPage(kernel)),
  ];
}
