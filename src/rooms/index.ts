/** Rooms: their events, state and members, and what users do with them. */

export { AutoJoin } from './auto-join/auto-join.ts';
export type { DelayedSending, EventToDelay } from './delayed-sending.ts';
export type { DirectoryRules } from './directory-rules.ts';
export { DummyEvents } from './dummy-events/dummy-events.ts';
export type { RoomEngine } from './engine.ts';
export { ErasedUsers } from './erasure/erased-users.ts';
export { erasureMigrations } from './erasure/migration.ts';
export type { EventRelations, IndexBatch, RelatedBy } from './event-relations.ts';
export type { ClientEvents, ClientFormat, Viewer } from './history/client-events.ts';
export { decodePlace, encodePlace, placeBefore } from './history/history-token.ts';
export { type Ignoring, isLeftOut } from './history/ignoring.ts';
export { readPage } from './history/pages.ts';
export type { MessagesPage } from './history/reading.ts';
export { RoomView, type VisibleEvent } from './history/room-view.ts';
export { Incoming, type Verification } from './incoming/incoming.ts';
export type {
  EventKeys,
  OtherServers,
  RemoteEvents,
  ServerHealth,
} from './incoming/remote-servers.ts';
export type { PduOutcome } from './incoming/staging/receiving.ts';
export { type ActionLimit, type Requesting, type RoomLimits, Throttle } from './limits.ts';
export { ComplexityLimit, complexityOf } from './membership/handshakes/joining/room-complexity.ts';
export { UntoldLeaves } from './membership/handshakes/leaving/untold-leaves.ts';
export type { MembershipPeers } from './membership/handshakes/peers.ts';
export { RemoteMemberships } from './membership/handshakes/remote-memberships.ts';
export { shownState } from './membership/handshakes/shown-state.ts';
export type { InvitePolicy } from './membership/invite-policy.ts';
export { knownServers } from './membership/known-servers.ts';
export type { MemberProfiles } from './membership/member-content.ts';
export { MemberUpkeep } from './membership/member-upkeep.ts';
export type { LocalUsers, Memberships } from './membership/memberships.ts';
export { PrejoinKeys, plainKeys } from './membership/prejoin-keys.ts';
export { prejoinPdus, readPrejoinState } from './membership/prejoin-state.ts';
export { restrictedJoin } from './membership/restricted-join.ts';
export { isHere } from './membership/room-presence.ts';
export type { UserRoom } from './membership/user-rooms.ts';
export { roomMigrations } from './migrations/index.ts';
export type { PartialRoom, PartialState } from './placement/entering/partial-state.ts';
export { MissingEvents } from './placement/missing-events.ts';
export type { Entry, OlderEvent, Placement, PlaceOptions } from './placement/placement.ts';
export type { RoomOfVersion, VerifiedEvent } from './placement/verified-event.ts';
export type { PublishedRooms } from './published-rooms.ts';
export { ForgottenRooms } from './purge/forgotten-rooms.ts';
export { RoomPurge } from './purge/room-purge.ts';
export type { PurgedRoom, RoomRows, RoomTable } from './purge/room-rows.ts';
export { RedactionRetention } from './redactions/redaction-retention.ts';
export { RoomTurns } from './room-turns.ts';
export { openRooms, type Rooms, type RoomsDeps as RoomsParts } from './rooms.ts';
export { roomRoutes } from './routes/room-routes.ts';
export type { Sender } from './sending.ts';
export { ServerAcls } from './server-acls.ts';
export type { Gap, ServedHistory } from './serving/served-history.ts';
export type { ServedState } from './serving/served-state.ts';
export { openServing, type Serving } from './serving/serving.ts';
export {
  type MembershipChange,
  type RoomFact,
  type StateChange,
  type StoredEvent,
  visibleContent,
} from './stored-event.ts';
export type { AddressInvite, ThirdPartyInviting } from './third-party-inviting.ts';
export type { AppendOptions } from './timeline/append.ts';
export type { HistoryPlace } from './timeline/event-store.ts';
export { type EventToSend, isText } from './timeline/event-to-send.ts';
export type { RoomHead, StateEntry } from './timeline/room-head.ts';
export { delayingDevice, transactionScope } from './timeline/transaction-ids.ts';
export { registerTransactionUpkeep } from './timeline/transaction-upkeep.ts';
export { SettingsTransfer } from './upgrade/settings-transfer.ts';
