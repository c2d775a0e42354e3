import type { RoomWriter, ServerAcls } from '../room-engine/index.ts';
import type { Incoming, StateCompletion } from '../room-federation/index.ts';
import type { RoomAliases } from './aliases/room-aliases.ts';
import type { BlockedRooms } from './blocking/blocked-rooms.ts';
import type { RoomCreation } from './creation/create-room.ts';
import type { ClientEvents } from './history/client-events.ts';
import type { EventByTime } from './history/event-by-time.ts';
import type { HistoryReader } from './history/history-reader.ts';
import type { StateReader } from './history/state-reader.ts';
import type { Throttle } from './limits.ts';
import type { Memberships } from './membership/memberships.ts';
import type { PublishedRooms } from './published-rooms.ts';
import type { ReadingRooms } from './reading-rooms.ts';
import type { Sending } from './sending.ts';
import type { RoomUpgrade } from './upgrade/upgrade-room.ts';

/** The operations of this slice. */
export interface Rooms extends ReadingRooms {
  readonly engine: RoomWriter;
  readonly aliases: RoomAliases;
  readonly published: PublishedRooms;
  readonly blocked: BlockedRooms;
  readonly memberships: Memberships;
  readonly throttle: Throttle;
  readonly creation: RoomCreation;
  readonly upgrades: RoomUpgrade;
  readonly sending: Sending;
  readonly historyReader: HistoryReader;
  readonly eventByTime: EventByTime;
  readonly stateReader: StateReader;
  readonly clientEvents: ClientEvents;
  readonly serverAcls: ServerAcls;
  readonly incoming: Incoming;
  /** Completes the state of rooms that were joined with partial state. */
  readonly completion: StateCompletion;
  /** Continues what a stop has interrupted: the processing of received PDUs, and the completion of partial states. */
  start(): Promise<void>;
  /** Stops what `start` has started, and waits until every added event is written. */
  stop(): Promise<void>;
}
