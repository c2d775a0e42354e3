import type { Membership, RoomVersion } from '../../protocol/index.ts';
import type { PartialState } from '../placement/entering/partial-state.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { Extremity } from './extremity.ts';
import type { StateEntry } from './head-state.ts';

export type { StateEntry } from './head-state.ts';

/** Identifies a current state: another object, or another number, once the state has changed. */
export interface StateMark {
  readonly state: object;
  readonly changes: number;
}

/** The end of an active room's history in memory, for reading: forward extremities, current state, members. */
export interface RoomHead {
  readonly roomNid: number;
  readonly roomId: string;
  /** The room's version; before this server has entered the room, the unverified one of an invite. */
  readonly version: RoomVersion;
  /** Whether this server is, or was, in the room, so that `version` is certain. */
  readonly isEntered: boolean;
  /** Set while the state of a room that was joined without its members is not complete. */
  readonly partial: PartialState | undefined;
  /** Whether members may be missing in the state. */
  readonly isPartial: boolean;
  /** Position on the stream at which the partial state became complete; 0 where that never happened. */
  readonly completedAt: number;
  /** Nids of events that nothing leads to since the room was entered again (`rooms.loose_ends`); newest last. */
  readonly formerExtremities: readonly number[];
  readonly extremities: readonly Extremity[];
  /** State group of the current state; `undefined` before this server has entered the room. */
  readonly stateGroup: number | undefined;
  /** The current state: `stateMapKey(type, stateKey)` to its entry. */
  readonly state: ReadonlyMap<string, StateEntry>;
  readonly stateMark: StateMark;
  /** Position on the stream at which the newest entry of the current state was set. */
  readonly changedAt: number;
  /** Users with a membership event and their membership. */
  readonly members: ReadonlyMap<string, Membership>;
  /** Joined users by server; 0 for servers of a partial state, of which only the name is known. */
  readonly servers: ReadonlyMap<string, number>;
  /** The newest events of the timeline that this process has seen, oldest first. */
  readonly recent: readonly StoredEvent[];

  /** Returns whether the current state is the one that `mark` was taken of. */
  isUnchanged(mark: StateMark): boolean;
  /** Returns the entry of the current state; `undefined` where there is none. */
  entry(type: string, stateKey: string): StateEntry | undefined;
  /** Returns a user's membership; `undefined` when the user has no membership event. */
  membership(userId: string): Membership | undefined;
  /** Counts the users with this membership. */
  memberCount(membership: Membership): number;
}

/** Gives out the heads of rooms for reading. */
export interface HeadReader {
  /** Returns the head when it is in memory. */
  peek(roomId: string): RoomHead | undefined;
  /** Returns the head of a room; `undefined` when this server does not know the room. */
  get(roomId: string): Promise<RoomHead | undefined>;
}
