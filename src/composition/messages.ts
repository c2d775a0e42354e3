import { DelayedEvents, delayedEventRoutes } from '../delayed-events/index.ts';
import type { Route } from '../kernel/http/index.ts';
import { OpenIdTokens, openIdRoutes } from '../openid/index.ts';
import { Notifications, notificationRoutes } from '../push/index.ts';
import { RelatedEvents, type RelationIndex, relationRoutes, ThreadList } from '../relations/index.ts';
import { Reports, reportRoutes } from '../reports/index.ts';
import { DummyEvents, RedactionRetention, type Rooms, readAccess, SettingsTransfer } from '../rooms/index.ts';
import { Search, SearchIndex, searchRoutes } from '../search/index.ts';
import { callRoutes } from '../voip/index.ts';
import type { Conversations } from './conversations.ts';
import type { Kernel } from './kernel.ts';
import { transferSettings } from './room-settings.ts';
import type { Shutdown } from './shutdown.ts';
import type { Users } from './users.ts';

/** Dependencies of the slices about messages. */
export interface MessageDeps {
  readonly kernel: Kernel;
  readonly users: Users;
  readonly rooms: Rooms;
  readonly relationIndex: RelationIndex;
  readonly conversations: Conversations;
  readonly shutdown: Shutdown;
}

/** What other slices use of these. */
export interface Messages {
  readonly delayedEvents: DelayedEvents;
  readonly openIdTokens: OpenIdTokens;
  readonly routes: readonly Route[];
}

/**
 * Opens relations, search, notifications, reports, delayed events and OpenID; to be called before jobs are
 * started.
 */
export async function startMessages(deps: MessageDeps): Promise<Messages> {
  const { kernel, users, rooms } = deps;
  const { rc_delayed_event_mgmt } = kernel.configuration.rateLimits;
  const delayedEvents = new DelayedEvents({
    ...kernel,
    rooms,
    isSuspended: async (userId) => (await users.accounts.accounts.getUser(userId))?.isSuspended === true,
    maxDelay: kernel.configuration.rooms.max_event_delay_duration,
  });
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
  const openIdTokens = new OpenIdTokens(kernel);
  const routes = [
    ...relationsRoutes(deps),
    ...reportsRoutes(deps),
    ...notificationRoutes(openNotifications(deps)),
    ...searchRoutes(await startSearch(deps)),
    ...openIdRoutes(openIdTokens, kernel.serverName),
    ...callRoutes(kernel.configuration.accounts, kernel.clock),
    ...delayedEventRoutes(delayedEvents, kernel.userLimiter(rc_delayed_event_mgmt)),
  ];
  return { delayedEvents, openIdTokens, routes };
}

/** Copies the settings of users for a room when they join its replacement. */
async function startSettingsTransfer({ kernel, users, rooms, shutdown }: MessageDeps): Promise<void> {
  const following = new SettingsTransfer({
    ...kernel,
    log: kernel.namedLog('rooms'),
    engine: rooms.engine,
    transfer: (userId, from, to) => transferSettings(users, userId, from, to),
  });
  await following.start();
  shutdown.add('settings of upgraded rooms', () => following.stop());
}

/** Starts search; `undefined` when the operator has disabled it: nothing is indexed then either. */
async function startSearch({ kernel, rooms, shutdown }: MessageDeps) {
  if (!kernel.configuration.search.enable_search) return undefined;
  const index = new SearchIndex({ ...kernel, log: kernel.namedLog('search'), engine: rooms.engine });
  await index.start();
  shutdown.add('search', () => index.stop());
  return new Search({ rooms, index });
}

function openNotifications({ kernel, users, rooms, conversations }: MessageDeps): Notifications {
  const { receipts, threadSubscriptions } = conversations;
  const { pushRules: rules, ignoredUsers: ignored, invitePermissions: invitePolicy } = users;
  const threads = threadSubscriptions.followed;
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
