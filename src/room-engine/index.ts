/** The room engine: events, state and timelines of rooms on disk and in memory, and the only way to add events. */

export { countRooms } from './count-rooms.ts';
export { ErasedUsers } from './erasure/erased-users.ts';
export { type Erasures, erasedEvents, joinedBeforeErasure } from './erasure/erasures.ts';
export { erasureMigrations } from './erasure/migration.ts';
export {
  type ChangedContent,
  type EventCheck,
  type EventCheckContext,
  type EventChecks,
  mayChange,
  type OpenEventChecks,
} from './event-checks.ts';
export type { EventIndex, IndexBatch } from './event-index.ts';
export { type EventToSend, isStorableText } from './event-to-send.ts';
export { type IgnoredUserLists, isHiddenFromUser } from './ignored-user-lists.ts';
export { knownServers } from './membership/known-servers.ts';
export { keysWithEmptyStateKey, PrejoinStateKeys } from './membership/prejoin-state-keys.ts';
export { isResident, isResidentForUser } from './membership/resident-server.ts';
export { allowedRoomIds, checkRestrictedJoin } from './membership/restricted-join.ts';
export type { UserRoom } from './membership/user-room.ts';
export { roomMigrations } from './migrations/index.ts';
export { stateGroupIds, stateGroupTables } from './migrations/state-groups.ts';
export type { PartialRoom, PartialState } from './partial-state.ts';
export { MissingEvents } from './placement/missing-events.ts';
export type {
  JoinResponse,
  OlderEvent,
  Placement,
  PlaceOptions,
  StateAfterEvent,
  SuppliedState,
} from './placement/placement.ts';
export type { PolicyServerClient, RemoteRequestOptions } from './policy/policy-servers.ts';
export { PolicyServers } from './policy/policy-servers.ts';
export type { CheckReceivedInvite, ReceivedEventChecks } from './received-event-checks.ts';
export {
  isExpired,
  isLifetime,
  MessageRetention,
  type RetentionOptions,
  retentionType,
  unexpired,
  withoutExpired,
} from './retention/message-retention.ts';
export { type EngineOptions, RoomReader, type RoomReaderDeps } from './room-reader.ts';
export { largestRooms, type RoomSize } from './room-sizes.ts';
export { RoomWriter, type RoomWriterDeps } from './room-writer.ts';
export { ServerAcls } from './server-acls.ts';
export { StateGroupCleanup } from './state/cleanup/state-group-cleanup.ts';
export {
  isHidden,
  type MembershipChange,
  type RoomFact,
  type SentTransaction,
  type StateChange,
  type StoredEvent,
  visibleContent,
} from './stored-event.ts';
export { EventFlag, type RoomTables } from './tables.ts';
export type { AppendOptions } from './timeline/append.ts';
export { eventColumns, storedEventOf } from './timeline/event-row.ts';
export { sizeOfEvent } from './timeline/event-size.ts';
export type { HistoryPlace } from './timeline/event-store.ts';
export { type EventTime, NearestEvents, type TimeDirection } from './timeline/nearest-event.ts';
export type { HeadReader, RoomHead, StateEntry } from './timeline/room-head.ts';
export type { StateHistoryEntry } from './timeline/state-history.ts';
export { registerTransactionCleanup } from './timeline/transaction-cleanup.ts';
export { delayedEventsDevice, transactionScope } from './timeline/transaction-ids.ts';
export { UnauthorizedEvent } from './timeline/unauthorized-event.ts';
export type { WritableHeads } from './timeline/writable-heads.ts';
export type { RoomWithVersion, VerifiedEvent } from './verified-event.ts';
