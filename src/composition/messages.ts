import type { ActiveUsers } from '../active-users/index.ts';
import { type DelayedEvents, openDelayedEvents } from '../delayed-events/index.ts';
import { type OpenIdTokens, openOpenId } from '../openid/index.ts';
import { openNotifications } from '../push/index.ts';
import { openRelations, type RelationIndex } from '../relations/index.ts';
import { openReports, type Reports } from '../reports/index.ts';
import type { Rooms } from '../rooms/index.ts';
import { openSearch } from '../search/index.ts';
import { callRoutes } from '../voip/index.ts';
import type { Conversations } from './conversations.ts';
import { senderCheck } from './gated-routes.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { Users } from './users.ts';

/** Dependencies of the slices about messages. */
export interface MessageDeps {
  readonly kernel: Kernel;
  readonly users: Users;
  /** Absent where users are not counted. */
  readonly activeUsers: ActiveUsers | undefined;
  readonly rooms: Rooms;
  readonly relationIndex: RelationIndex;
  readonly conversations: Conversations;
  readonly opened: OpenedSlices;
}

/** The services that the slices about messages offer to other slices. */
export interface Messages {
  readonly delayedEvents: DelayedEvents;
  readonly openIdTokens: OpenIdTokens;
  readonly reports: Reports;
}

/**
 * Opens relations, search, notifications, reports, delayed events, calls and OpenID. Must be called before jobs are
 * started.
 */
export async function startMessages(deps: MessageDeps): Promise<Messages> {
  const { kernel, users, rooms, relationIndex: index, conversations, opened } = deps;
  const { accounts } = users.accounts;
  const { ignoredUsers: ignored } = users;
  const { rateLimits, rooms: roomOptions, search: searchOptions } = kernel.configuration;
  const { delayedEvents } = opened.add(
    'delayed events',
    openDelayedEvents({
      ...kernel,
      rooms,
      restrictions: async (userId) => {
        const { isSuspended = false, isShadowBanned = false } = (await accounts.getUser(userId)) ?? {};
        return { isSuspended, isShadowBanned };
      },
      checkSender: senderCheck(kernel, users, deps.activeUsers),
      maxDelay: roomOptions.max_event_delay_duration,
      limit: kernel.userLimiter(rateLimits.rc_delayed_event_mgmt),
    }),
  );
  const { openIdTokens } = opened.add('OpenID tokens', openOpenId(kernel));
  opened.add('relations', openRelations({ ...rooms, index, ignored }));
  const reports = openReports({
    ...kernel,
    engine: rooms.engine,
    userExists: (userId) => accounts.userExists(userId),
    limit: kernel.userLimiter(rateLimits.rc_reports),
  });
  opened.add('reports', reports);
  const notifications = openNotifications({
    ...kernel,
    ...rooms,
    enabled: kernel.configuration.push.push.enabled,
    evaluation: conversations.push.evaluation,
    invitePolicy: users.invitePermissions,
  });
  opened.add('notifications', notifications);
  opened.add('calls', { routes: callRoutes(kernel.configuration.accounts, kernel.clock) });
  const searchDeps = { ...kernel, log: kernel.namedLog('search'), rooms, options: searchOptions };
  opened.add('search', await openSearch(searchDeps));
  return { delayedEvents, openIdTokens, reports: reports.reports };
}
