import { type JsonObject, type Membership, type RoomEvent, redactEvent } from '../protocol/index.ts';
import type { Extremity } from './timeline/extremity.ts';

/** An event with its place in this database. */
export interface StoredEvent {
  /** Stands for the event inside this database. */
  readonly nid: number;
  readonly roomNid: number;
  readonly event: RoomEvent;
  /**
   * Place on the room's timeline. `undefined` for outliers, rejected and soft-failed events, which clients never see.
   * Negative when it was backfilled.
   */
  readonly stream: number | undefined;
  /** State group after the event; `undefined` while it is not known. */
  readonly stateGroup: number | undefined;
  /** State group before the event. */
  readonly stateBefore: number | undefined;
  /** nid of the state event that this one took the place of. */
  readonly replaces: number | undefined;
  readonly rejected: boolean;
  readonly softFailed: boolean;
  /** Whether this server has to pass it on to others though its sender is a user of another server. */
  readonly distribute: boolean;
  /** With it the current state changed in other ways than by taking the event in: state was resolved. */
  readonly resolves: boolean;
  /** When it got its place on the timeline, events before it were missing there. */
  readonly followsGap: boolean;
  /** It is one of `outside_events`: no event of the room, and maybe of another version than the room turns out to be. */
  readonly outOfBand: boolean;
  /** nid of the redaction that took effect; set when it does. */
  redactedBy: number | undefined;
}

/** A change of the current state: an entry appears, is replaced, or (`event` undefined) is removed. */
export interface StateChange {
  readonly type: string;
  readonly stateKey: string;
  readonly event: StoredEvent | undefined;
  /** nid of the entry before. */
  readonly previousNid: number | undefined;
  /** The number of the entry; `undefined` where it is sure to be in memory. */
  readonly keyNid: number | undefined;
}

/** A change of somebody's membership, as part of a change of the current state. */
export interface MembershipChange {
  readonly userId: string;
  /** `undefined`: no membership event before. */
  readonly from: Membership | undefined;
  readonly to: Membership;
  /** nid of the membership event; where there is none any more, of the event that removed it. */
  readonly eventNid: number;
}

/** The fact on the stream of rooms: what an event did to a room. */
export interface RoomFact {
  readonly roomId: string;
  /** Where on the stream. */
  readonly position: number;
  /**
   * Whether `stored` is a new event of the room's timeline, at `position`. If not, only memberships or state changed,
   * because of it: an invite from another server, or the rest of a state that was incomplete.
   */
  readonly onTimeline: boolean;
  readonly stored: StoredEvent;
  /** What the event, or the state resolution that it caused, did to the current state. */
  readonly stateChanges: readonly StateChange[];
  readonly membershipChanges: readonly MembershipChange[];
  /**
   * The end of the room after the event; absent when more has changed than the event and `stateChanges` say (a room was
   * entered, its state was completed, older events were added): then what is known of the room must be read again.
   */
  readonly end?: RoomEnd;
  /** nid of the event that this one redacts. */
  readonly redacts?: number | undefined;
  /** The transaction of the client that sent the event, see `TransactionIds`. */
  readonly transaction?: SentTransaction | undefined;
}

/** The end of a room's history. */
export interface RoomEnd {
  readonly extremities: readonly Extremity[];
  /** State group of the current state. */
  readonly group: number | undefined;
}

/** A client's transaction id, with the device that it belongs to as `transactionScope` numbers it. */
export interface SentTransaction {
  readonly scope: number;
  readonly txnId: string;
}

/** The content as it may be shown: without what a redaction took away. */
export function visibleContent({ event, redactedBy }: StoredEvent): JsonObject {
  return redactedBy === undefined ? event.content : redactEvent(event).event.content;
}
