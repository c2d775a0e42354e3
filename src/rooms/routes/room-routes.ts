import type { Route } from '../../kernel/http/index.ts';
import type { Rooms } from '../rooms.ts';
import { creationRoutes } from './creation-routes.ts';
import { eventRoutes } from './event-routes.ts';
import { membershipRoutes } from './membership-routes.ts';
import { readingRoutes } from './reading-routes.ts';
import { type DelayedSending, sendingRoutes } from './sending-routes.ts';
import type { ThirdPartyInviting } from './third-party-inviting.ts';
import { upgradeRoutes } from './upgrade-routes.ts';

/**
 * Returns all routes of this slice.
 * @param maxEventsPerPage the largest page of events (`filter_timeline_limit`)
 */
export function roomRoutes(
  rooms: Rooms,
  maxEventsPerPage: number,
  delayed: DelayedSending,
  thirdParties: ThirdPartyInviting,
): Route[] {
  return [
    ...creationRoutes(rooms.creation, rooms.aliases, thirdParties),
    ...upgradeRoutes(rooms.upgrades),
    ...membershipRoutes(rooms.memberships, rooms.aliases, thirdParties),
    ...sendingRoutes(rooms.sending, delayed),
    ...eventRoutes(rooms),
    ...readingRoutes(rooms, maxEventsPerPage),
  ];
}
