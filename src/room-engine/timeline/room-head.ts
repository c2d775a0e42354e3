import type { Membership, RoomVersion } from '../../protocol/index.ts';
import type { FormerPartialState, PartialState } from '../partial-state.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { Extremity } from './extremity.ts';
import type { StateEntry } from './head-state.ts';

export type { StateEntry } from './head-state.ts';

/** Identifies the current state at a time: when the object or the number differs, the state has changed since then. */
export interface StateMark {
  readonly state: object;
  readonly changes: number;
}

/** The forward extremities, current state and members of an active room in memory, for reading. */
export interface RoomHead {
  readonly roomNid: number;
  readonly roomId: string;
  /** The room's version; before this server has entered the room, the unverified version of an invite. */
  readonly version: RoomVersion;
  /** Whether this server is, or was, in the room, so that `version` is certain. */
  readonly isEntered: boolean;
  /** Set while the state of the room is partial, because members or other state events were missing at the join. */
  readonly partial: PartialState | undefined;
  /** Whether members or other state events may be missing in the state. */
  readonly isPartial: boolean;
  /** Whether the state is partial because members are missing, other than those whose keys could not be fetched. */
  readonly lacksMembers: boolean;
  /**
   * Position on the stream at which the partial state became complete, or complete but for events whose keys could not
   * be fetched (`PartialState.membersAt`); 0 where it never did.
   */
  readonly completedAt: number;
  /** The join and the servers of a partial state that has become complete. */
  readonly formerPartial: FormerPartialState | undefined;
  /**
   * Nids of the former forward extremities (`rooms.former_extremities`), newest last: the room had them when the last
   * local user left it, and no newer event leads to them.
   */
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
  /** Number of joined users by server; 0 for servers of a partial state whose members are not known. */
  readonly servers: ReadonlyMap<string, number>;
  /** The newest events of the timeline that this process has seen, oldest first. */
  readonly recent: readonly StoredEvent[];
  /**
   * Position of the newest event since the head was loaded whose depth is smaller than the depth of an earlier event; 0
   * when there is no such event. Events after this position have the same order on the stream and in the history of the
   * room.
   */
  readonly lateAt: number;

  /** Returns whether the current state is the same as when `mark` was read from `stateMark`. */
  isUnchanged(mark: StateMark): boolean;
  /** Returns the entry of the current state; `undefined` where there is none. */
  entry(type: string, stateKey: string): StateEntry | undefined;
  /** Returns a user's membership; `undefined` when the user has no membership event. */
  membership(userId: string): Membership | undefined;
  /** Counts the users with this membership. */
  memberCount(membership: Membership): number;
}

/** Returns the heads of rooms, for reading. */
export interface HeadReader {
  /** Returns the head of a room if it is in memory. */
  peek(roomId: string): RoomHead | undefined;
  /** Returns the head of a room; `undefined` when this server does not know the room. */
  get(roomId: string): Promise<RoomHead | undefined>;
}
