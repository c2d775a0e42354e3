/** The engine of rooms: their events, state and timelines on disk and in memory, and the one way to add events. */

export { ErasedUsers } from './erasure/erased-users.ts';
export { cameBefore, type Erasures, erasedAmong } from './erasure/erasures.ts';
export { erasureMigrations } from './erasure/migration.ts';
export type { EventIndex, IndexBatch } from './event-index.ts';
export { type Ignoring, isLeftOut } from './ignoring.ts';
export { knownServers } from './membership/known-servers.ts';
export { PrejoinKeys, plainKeys } from './membership/prejoin-keys.ts';
export { allowRooms, restrictedJoin } from './membership/restricted-join.ts';
export { isHere, isHereFor } from './membership/room-presence.ts';
export type { UserRoom } from './membership/user-rooms.ts';
export { roomMigrations } from './migrations/index.ts';
export type { PartialRoom, PartialState } from './placement/entering/partial-state.ts';
export { MissingEvents } from './placement/missing-events.ts';
export type { Entry, OlderEvent, Placement, PlaceOptions } from './placement/placement.ts';
export type { RoomOfVersion, VerifiedEvent } from './placement/verified-event.ts';
export type { PolicyPeers, RemoteRequest } from './policy/policy-peers.ts';
export { RoomPolicies } from './policy/room-policies.ts';
export { type EngineOptions, RoomReader, type RoomReaderDeps } from './room-reader.ts';
export { RoomWriter, type RoomWriterDeps } from './room-writer.ts';
export { ServerAcls } from './server-acls.ts';
export type { StateHistoryEntry } from './state/state-history.ts';
export {
  type MembershipChange,
  type RoomFact,
  type StateChange,
  type StoredEvent,
  visibleContent,
} from './stored-event.ts';
export { EventFlag, type RoomTables } from './tables.ts';
export type { AppendOptions } from './timeline/append.ts';
export { eventColumns, storedEventOf } from './timeline/event-row.ts';
export type { HistoryPlace } from './timeline/event-store.ts';
export { type EventToSend, isText } from './timeline/event-to-send.ts';
export type { HeadReader } from './timeline/head-reader.ts';
export { type EventTime, NearestEvents, type TimeDirection } from './timeline/nearest-event.ts';
export type { RoomHead, StateEntry } from './timeline/room-head.ts';
export { delayingDevice, transactionScope } from './timeline/transaction-ids.ts';
export { registerTransactionUpkeep } from './timeline/transaction-upkeep.ts';
export type { WritableHeads } from './timeline/writable-heads.ts';
