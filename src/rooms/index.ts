/** Rooms: their events, state and members, and what users do with them. */

export type { DirectoryRules } from './directory-rules.ts';
export type { RoomEngine } from './engine.ts';
export type { ClientEvents, ClientFormat, Viewer } from './history/client-events.ts';
export { encodePlace, placeBefore } from './history/history-token.ts';
export type { MessagesPage } from './history/reading.ts';
export { RoomView, type VisibleEvent } from './history/room-view.ts';
export { MemberUpkeep } from './membership/member-upkeep.ts';
export type { LocalUsers, MemberProfiles } from './membership/memberships.ts';
export type { UserRoom } from './membership/user-rooms.ts';
export { roomMigrations } from './migrations/index.ts';
export { openRooms, type Rooms, type RoomsParts } from './rooms.ts';
export { roomRoutes } from './routes/room-routes.ts';
export type { MembershipChange, RoomFact, StateChange, StoredEvent } from './stored-event.ts';
export type { RoomHead, StateEntry } from './timeline/room-head.ts';
