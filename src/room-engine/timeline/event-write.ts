import type { GroupRows } from '../state/group-chain.ts';
import type { RoomEnd, RoomFact, SentTransaction, StoredEvent } from '../stored-event.ts';
import { EventFlag } from '../tables.ts';
import type { WritableHead } from './writable-head.ts';

/** All that has to be on disk before an event is acknowledged. */
export interface EventWrite {
  readonly head: WritableHead;
  readonly stored: StoredEvent;
  /**
   * Whether the event is new, was known before and gets its place now, is none of the room but comes from outside of
   * it, or is only the cause of what is written.
   */
  readonly row: 'new' | 'known' | 'outside' | 'untouched';
  /** What is published; nothing for events that have no place. */
  readonly fact: RoomFact | undefined;
  /** The end of the room after the event; absent where it stays as it is. */
  readonly end: RoomEnd | undefined;
  /** The state groups that the event made. */
  readonly groups: readonly GroupRows[];
  /** The auth events of a state event. */
  readonly auth: readonly number[];
  /** The client's transaction, see `TransactionIds`. */
  readonly transaction?: SentTransaction | undefined;
  /** The event that this one redacts. */
  readonly redacts: StoredEvent | undefined;
  /** Milliseconds since the epoch; set for the first event of a room. */
  readonly roomCreatedTs?: number;
  readonly remote?: RemoteWrite;
}

/** What there is to write about events of other servers in particular. */
export interface RemoteWrite {
  /** `stateMapKey` of entries of the groups, so that their rows are there. */
  readonly stateKeys?: Iterable<string>;
  /** Events that have their places and of which something else is known now, by number; they do not change any more. */
  readonly revised?: ReadonlyMap<number, StoredEvent>;
  /** For an event from outside: the server that has invited the user, or taken their knock. */
  readonly server?: string | undefined;
  /** Position at which the event got its place, where that is not its number. */
  readonly place?: number | undefined;
  /** Ids of previous events that are not on the timeline. */
  readonly missing?: readonly string[];
  /** How many answers may be taken on the way back from these though nobody reads them; absent: none. */
  readonly answersLeft?: number | undefined;
  /** The event may be such a one, and is on the timeline from now on. */
  readonly fillsGap?: boolean;
  /** The id of the event that it redacts, when that is not known. */
  readonly pendingTarget?: string | undefined;
  /** When the event was redacted, in milliseconds since the epoch, by one that came before it. */
  readonly redactedTs?: number | undefined;
  /** What users are shown of the room who are not in it, as JSON; `undefined`: nothing any more. */
  readonly stripped?: ReadonlyMap<string, string | undefined>;
  /** `rooms.loose_ends`. */
  readonly formerExtremities?: readonly number[] | undefined;
  /** `PartialStateColumn` as JSON. */
  readonly partialState?: string | null;
}

/** Bits of `EventFlag`. */
export function flagsOf(stored: StoredEvent): number {
  return (
    (stored.rejected ? EventFlag.rejected : 0) |
    (stored.softFailed ? EventFlag.softFailed : 0) |
    (stored.stream === undefined ? EventFlag.outlier : 0) |
    (stored.distribute ? EventFlag.distribute : 0) |
    (stored.resolves ? EventFlag.resolves : 0) |
    (stored.followsGap ? EventFlag.followsGap : 0)
  );
}
