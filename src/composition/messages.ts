import { thirdPartyNetworkRoutes } from '../appservices/index.ts';
import { type DelayedEvents, openDelayedEvents } from '../delayed-events/index.ts';
import type { Route } from '../kernel/http/index.ts';
import { type OpenIdTokens, openOpenId } from '../openid/index.ts';
import { Notifications, notificationRoutes } from '../push/index.ts';
import { RelatedEvents, type RelationIndex, relationRoutes, ThreadList } from '../relations/index.ts';
import { Reports, reportRoutes } from '../reports/index.ts';
import { DummyEvents, RedactionRetention, type Rooms, readAccess, SettingsTransfer } from '../rooms/index.ts';
import { openSearch } from '../search/index.ts';
import { callRoutes } from '../voip/index.ts';
import type { Conversations } from './conversations.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import { transferSettings } from './room-settings.ts';
import type { Users } from './users.ts';

/** Dependencies of the slices about messages. */
export interface MessageDeps {
  readonly kernel: Kernel;
  readonly users: Users;
  readonly rooms: Rooms;
  readonly relationIndex: RelationIndex;
  readonly conversations: Conversations;
  readonly opened: OpenedSlices;
}

/** The parts of these slices that others use. */
export interface Messages {
  readonly delayedEvents: DelayedEvents;
  readonly openIdTokens: OpenIdTokens;
}

/**
 * Opens relations, search, notifications, reports, delayed events and OpenID; to be called before jobs are
 * started.
 */
export async function startMessages(deps: MessageDeps): Promise<Messages> {
  const { kernel, users, rooms, opened } = deps;
  const { rc_delayed_event_mgmt } = kernel.configuration.rateLimits;
  const { delayedEvents } = opened.add(
    'delayed events',
    openDelayedEvents({
      ...kernel,
      rooms,
      isSuspended: async (userId) => (await users.accounts.accounts.getUser(userId))?.isSuspended === true,
      maxDelay: kernel.configuration.rooms.max_event_delay_duration,
      limit: kernel.userLimiter(rc_delayed_event_mgmt),
    }),
  );
  new RedactionRetention({
    ...kernel,
    engine: rooms.engine,
    period: kernel.configuration.rooms.redaction_retention_period,
  });
  new DummyEvents({
    ...kernel,
    log: kernel.namedLog('rooms'),
    engine: rooms.engine,
    threshold: kernel.configuration.rooms.dummy_events_threshold,
  });
  await startSettingsTransfer(deps);
  const { openIdTokens } = opened.add('OpenID tokens', openOpenId(kernel));
  opened.add('relations', { routes: relationsRoutes(deps) });
  opened.add('reports', { routes: reportsRoutes(deps) });
  opened.add('notifications', { routes: notificationRoutes(openNotifications(deps)) });
  opened.add('calls', { routes: callRoutes(kernel.configuration.accounts, kernel.clock) });
  opened.add('third-party networks', { routes: thirdPartyNetworkRoutes() });
  const options = kernel.configuration.search;
  opened.add('search', await openSearch({ ...kernel, log: kernel.namedLog('search'), rooms, options }));
  return { delayedEvents, openIdTokens };
}

/** Copies the settings of users for a room when they join its replacement. */
async function startSettingsTransfer({ kernel, users, rooms, opened }: MessageDeps): Promise<void> {
  const following = new SettingsTransfer({
    ...kernel,
    log: kernel.namedLog('rooms'),
    engine: rooms.engine,
    transfer: (userId, from, to) => transferSettings(users, userId, from, to),
    moveListing: (from, to) => rooms.upgrades.moveListing(from, to),
  });
  await following.start();
  opened.add('settings of upgraded rooms', { stop: () => following.stop() });
}

function openNotifications({ kernel, users, rooms, conversations }: MessageDeps): Notifications {
  const { receipts, threads: subscriptions } = conversations;
  const { pushRules: rules, ignoredUsers: ignored, invitePermissions: invitePolicy } = users;
  const threads = subscriptions.followed;
  return new Notifications({ ...kernel, ...rooms, receipts, rules, ignored, threads, invitePolicy });
}

function reportsRoutes({ kernel, users, rooms }: MessageDeps): Route[] {
  const { accounts } = users.accounts;
  const reports = new Reports({
    ...kernel,
    engine: rooms.engine,
    userExists: (userId) => accounts.userExists(userId),
    limit: kernel.userLimiter(kernel.configuration.rateLimits.rc_reports),
  });
  return reportRoutes(reports);
}

function relationsRoutes({ users, rooms, relationIndex }: MessageDeps): Route[] {
  const parts = { ...rooms, index: relationIndex, ignored: users.ignoredUsers };
  return relationRoutes(new RelatedEvents(parts), new ThreadList(parts), readAccess(rooms.engine));
}
