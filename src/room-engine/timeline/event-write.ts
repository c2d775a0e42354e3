import type { GroupRows } from '../state/group-chain.ts';
import type { RoomEnd, RoomFact, SentTransaction, StoredEvent } from '../stored-event.ts';
import { EventFlag } from '../tables.ts';
import type { WritableHead } from './writable-head.ts';

/** All rows that must be on disk before an event is acknowledged. */
export interface EventWrite {
  readonly head: WritableHead;
  readonly stored: StoredEvent;
  /**
   * The change of the event's row:
   * - `new`: a row is inserted;
   * - `known`: the row of a stored event is updated, because the event is placed or is a redaction that takes effect;
   * - `outside`: a row of `outside_events` is inserted, because the event is out-of-band;
   * - `untouched`: the row does not change, because the event only causes the other changes.
   */
  readonly rowAction: 'new' | 'known' | 'outside' | 'untouched';
  /** The fact that is published; `undefined` for events without a place. */
  readonly fact: RoomFact | undefined;
  /** The end of the room after the event; `undefined` where it does not change. */
  readonly end: RoomEnd | undefined;
  /** The new state groups. */
  readonly groups: readonly GroupRows[];
  /** The nids of the auth events of a state event. */
  readonly auth: readonly number[];
  /** The client's transaction, see `TransactionIds`. */
  readonly transaction?: SentTransaction | undefined;
  /** The event that `stored` redacts. */
  readonly redacts: StoredEvent | undefined;
  /** Milliseconds since the epoch; set for the first event of a room. */
  readonly roomCreatedTs?: number;
  readonly remote?: RemoteWrite;
}

/** The rows that are written mostly for events of remote servers. */
export interface RemoteWrite {
  /** `stateMapKey` of entries of the new groups, so that their `state_keys` rows are written. */
  readonly stateKeys?: Iterable<string>;
  /** Revised copies of placed events, by nid; they must not change any more. */
  readonly revised?: ReadonlyMap<number, StoredEvent>;
  /** For an out-of-band event: the server that sent the invite or received the knock. */
  readonly server?: string | undefined;
  /** Position of the placed event; absent when its nid is its position. */
  readonly place?: number | undefined;
  /** Ids of previous events that are not on the timeline: the new backward extremities. */
  readonly missing?: readonly string[];
  /** Number of backfill responses that may be fetched from `missing` without a request of a client; absent: 0. */
  readonly backfillsLeft?: number | undefined;
  /** The event may be a backward extremity, and is none after this write, because it is placed or rejected. */
  readonly fillsGap?: boolean;
  /** The id of the event that `stored` redacts, when that event is unknown. */
  readonly pendingTarget?: string | undefined;
  /** `origin_server_ts` of the redaction that arrived before the event and redacts it. */
  readonly redactedTs?: number | undefined;
  /** The stripped state of users with out-of-band memberships, as JSON by user id; `undefined` deletes it. */
  readonly stripped?: ReadonlyMap<string, string | undefined>;
  /** The value of `rooms.former_extremities`. */
  readonly formerExtremities?: readonly number[] | undefined;
  /** `PartialStateColumn` as JSON. */
  readonly partialState?: string | null;
}

/** Returns the properties of an event as bits of `EventFlag`. */
export function flagsOf(stored: StoredEvent): number {
  return (
    (stored.rejected ? EventFlag.rejected : 0) |
    (stored.softFailed ? EventFlag.softFailed : 0) |
    (stored.stream === undefined ? EventFlag.outlier : 0) |
    (stored.distribute ? EventFlag.distribute : 0) |
    (stored.resolves ? EventFlag.resolves : 0) |
    (stored.followsGap ? EventFlag.followsGap : 0) |
    (stored.withheld ? EventFlag.withheld : 0) |
    (stored.acceptedElsewhere ? EventFlag.acceptedElsewhere : 0)
  );
}
