import { type JsonObject, type Membership, type RoomEvent, redactEvent } from '../protocol/index.ts';
import type { Extremity } from './timeline/extremity.ts';

/** An event with its place in the database. */
export interface StoredEvent {
  /** The number of the event inside this database. */
  readonly nid: number;
  readonly roomNid: number;
  readonly event: RoomEvent;
  /**
   * Position on the room's timeline. `undefined` for outliers, rejected and soft-failed events: clients never see
   * these. Negative for backfilled events.
   */
  readonly stream: number | undefined;
  /** State group after the event; `undefined` while it is not known. */
  readonly stateGroup: number | undefined;
  /** State group before the event; `undefined` while it is not known. */
  readonly stateBefore: number | undefined;
  /** nid of the state event that this event replaced. */
  readonly replaces: number | undefined;
  readonly rejected: boolean;
  readonly softFailed: boolean;
  /** Whether this server sends the event to the other servers of the room, though its sender is a remote user. */
  readonly distribute: boolean;
  /**
   * Whether a remote server accepted the event of a local user in a handshake, or sent it here. Then that server sends
   * it to the other servers, and this server does not.
   */
  readonly acceptedElsewhere: boolean;
  /** The event changed the current state in more than its own entry, because state was resolved. */
  readonly resolves: boolean;
  /** When the event was placed, events before it were missing on the timeline. */
  readonly followsGap: boolean;
  /**
   * The event is a redaction that takes no effect, or whose target is not stored yet. It is part of the room's history
   * and is sent to other servers, but clients do not see it. Source: room version 3, "Handling redactions".
   */
  readonly withheld: boolean;
  /**
   * The event is a row of `outside_events`: an out-of-band membership. It is not an event of the room, and may have
   * another room version.
   */
  readonly outOfBand: boolean;
  /** nid of the redaction of this event that took effect; set as soon as it takes effect. */
  redactedBy: number | undefined;
}

/** Returns whether clients never see an event: it is rejected, soft-failed or a withheld redaction. */
export function isHidden({ rejected, softFailed, withheld }: StoredEvent): boolean {
  return rejected || softFailed || withheld;
}

/** A change of the current state: an entry is added, replaced, or (`event` undefined) removed. */
export interface StateChange {
  readonly type: string;
  readonly stateKey: string;
  readonly event: StoredEvent | undefined;
  /** nid of the previous entry. */
  readonly previousNid: number | undefined;
  /** The state key nid; `undefined` where the cache of state keys has it. */
  readonly keyNid: number | undefined;
}

/** A change of a user's membership, as part of a change of the current state. */
export interface MembershipChange {
  readonly userId: string;
  /** `undefined` where the user had no membership event. */
  readonly from: Membership | undefined;
  readonly to: Membership;
  /** nid of the membership event. Where the entry was removed: nid of the event that removed it. */
  readonly eventNid: number;
}

/** The fact on the stream of rooms: the changes that an event made to a room. */
export interface RoomFact {
  readonly roomId: string;
  /** Position on the stream. */
  readonly position: number;
  /**
   * Whether `stored` is a new event of the room's timeline, at `position`. Otherwise `stored` is an out-of-band
   * membership event, the cause of the completion of a partial state, a backfilled event, or a redaction that was
   * withheld until its target arrived.
   */
  readonly onTimeline: boolean;
  /** Whether the room's partial state (`omit_members`) is complete from `position` on. */
  readonly completesState?: true;
  readonly stored: StoredEvent;
  /** The changes of the current state by the event, or by the state resolution that it caused. */
  readonly stateChanges: readonly StateChange[];
  readonly membershipChanges: readonly MembershipChange[];
  /**
   * The end of the room after the event. Absent when more has changed than the event and `stateChanges` describe (a
   * room was entered, its state was completed, older events were added): then cached data of the room must be
   * read again.
   */
  readonly end: RoomEnd | undefined;
  /** nid of the event that `stored` redacts. */
  readonly redacts: number | undefined;
  /** The transaction of the client that sent the event, see `TransactionIds`. */
  readonly transaction: SentTransaction | undefined;
}

/** The fields of a fact that makes readers read cached data of the room again, see `RoomFact.end`. */
export const withoutEnd = { end: undefined, redacts: undefined, transaction: undefined } as const;

/** The forward extremities and the current state of a room. */
export interface RoomEnd {
  readonly extremities: readonly Extremity[];
  /** State group of the current state. */
  readonly group: number | undefined;
}

/** A transaction of a client. */
export interface SentTransaction {
  /** The number of the user's device, from `transactionScope`. */
  readonly scope: number;
  /** The transaction id, with a hash of the request path in front of it (`TransactionIds`). */
  readonly txnId: string;
}

/** Returns the content that clients may see: redacted where a redaction took effect. */
export function visibleContent({ event, redactedBy }: StoredEvent): JsonObject {
  return redactedBy === undefined ? event.content : redactEvent(event).event.content;
}
