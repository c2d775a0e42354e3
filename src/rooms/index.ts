/** Rooms as local users use them: creating, joining, sending, reading, upgrading. */

export type { AliasReservations, DirectoryRules, RoomAliases } from './aliases/room-aliases.ts';
export { AutoJoinJobs } from './auto-join/auto-join-jobs.ts';
export { BlockedRooms } from './blocking/blocked-rooms.ts';
export { RoomDeletion, type RoomDeletionRequest, type RoomDeletionStatus } from './deletion/room-deletion.ts';
export type { DummyEvents } from './dummy-events/dummy-events.ts';
export type { EventRelations, RelatedBy, Viewer } from './event-relations.ts';
export {
  ClientEvents,
  type ClientFormat,
  type EventAdditions,
  type OpenRelations,
} from './history/client-events.ts';
export type { Signalled } from './history/complete-members.ts';
export { EventByTime } from './history/event-by-time.ts';
export type { EventTexts } from './history/event-texts.ts';
export type { MessagesPage } from './history/history-reader.ts';
export { decodePlace, encodePlace, placeBefore, type SplitPlace } from './history/history-token.ts';
export { type HistorySource, readPage } from './history/pages.ts';
export { RoomView, type VisibleEvent } from './history/room-view.ts';
export type { SharedText } from './history/shared-text.ts';
export {
  type ActionLimit,
  type InviteLimits,
  type RequestingUser,
  type RoomLimits,
  Throttle,
} from './limits.ts';
export type { InvitePolicy } from './membership/invite-policy.ts';
export type { MemberProfiles } from './membership/member-content.ts';
export { MembershipJobs } from './membership/membership-jobs.ts';
export { type LeaveCheck, type LocalUsers, Memberships } from './membership/memberships.ts';
export {
  type OpenRemoteMemberships,
  openRooms,
  type RoomExtensions,
  type RoomFederation,
  type RoomsDeps,
  type RoomsOptions,
} from './open.ts';
export { PublishedRooms } from './published-rooms.ts';
export { HistoryPurge } from './purge/history-purge.ts';
export { RoomPurge } from './purge/room-purge.ts';
export { openReadingRooms, type ReadingRooms } from './reading-rooms.ts';
export { UserRedaction, type UserRedactionStatus } from './redactions/user-redaction.ts';
export type { Rooms } from './rooms.ts';
export { readAccess } from './routes/read-access.ts';
export { roomRoutes } from './routes/room-routes.ts';
export type { DelayedSending, EventToDelay } from './routes/sending-routes.ts';
export type { AddressInvite, ThirdPartyInviting } from './routes/third-party-inviting.ts';
export type { Sender } from './sending.ts';
export { openRoomUpkeep, type RoomUpkeep, type RoomUpkeepDeps } from './upkeep.ts';
