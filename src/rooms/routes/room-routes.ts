import type { Route } from '../../kernel/http/index.ts';
import type { DelayedSending } from '../delayed-sending.ts';
import type { Rooms } from '../rooms.ts';
import type { ThirdPartyInviting } from '../third-party-inviting.ts';
import { upgradeRoutes } from '../upgrade/routes.ts';
import { creationRoutes } from './creation-routes.ts';
import { eventRoute } from './event-route.ts';
import { membershipRoutes } from './membership-routes.ts';
import { readingRoutes } from './reading-routes.ts';
import { sendingRoutes } from './sending-routes.ts';
import { timeRoutes } from './time-routes.ts';

/**
 * All routes of this slice.
 * @param maxEvents the largest page of events (`filter_timeline_limit`)
 */
export function roomRoutes(
  rooms: Rooms,
  maxEvents: number,
  delayed: DelayedSending,
  thirdParties: ThirdPartyInviting,
): Route[] {
  return [
    ...creationRoutes(rooms.creation, rooms.aliases, thirdParties),
    ...upgradeRoutes(rooms.upgrades),
    ...membershipRoutes(rooms.memberships, rooms.aliases, thirdParties),
    ...sendingRoutes(rooms.sending, delayed),
    ...timeRoutes(rooms.eventByTime),
    eventRoute(rooms),
    ...readingRoutes(rooms.reading, rooms.stateReading, maxEvents),
  ];
}
