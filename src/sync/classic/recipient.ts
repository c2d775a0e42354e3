import type { Filter } from '../../filters/index.ts';
import type { AccountDataItem } from '../../sync-contract/index.ts';
import type { Changes } from '../feeds/feed.ts';

/**
 * Name of the field with the state at the end of a timeline: the name in the specification, or the unstable name for
 * clients that requested it with the unstable parameter. Source: MSC4222, "Unstable prefix".
 */
export type StateAfter = 'state_after' | 'org.matrix.msc4222.state_after';

/** The user and device that sync, and the options of the request. */
export interface Recipient {
  readonly userId: string;
  readonly deviceId: string | undefined;
  readonly filter: Filter;
  /** Maximum number of events of each timeline. */
  readonly timelineLimit: number;
  /**
   * Set when the client wants the state at the end of the timeline instead of the state before it (`use_state_after`).
   */
  readonly stateAfter: StateAfter | undefined;
}

/** The part of a room's history that one answer covers. */
export interface RoomRange {
  /** `undefined` when the room is new to the client, which then receives the whole state. */
  readonly after: number | undefined;
  readonly upTo: number;
  /**
   * Set when the user has joined again: the client may have a timeline of an earlier membership up to this position.
   */
  readonly rejoinedAfter: number | undefined;
  /** Combined bits of the timeline and of the sources (`SourceList`) that may have changed. */
  readonly changedBits: number;
  /** The user's changed account data, of all rooms. */
  readonly accountData: readonly AccountDataItem[];
  /** Ephemeral events of a room that is new to the client, as JSON texts by event type. */
  readonly initialEphemeral: ReadonlyMap<string, readonly string[]>;
  /** Whether to return the whole state although the client knows the room. */
  readonly fullState: boolean;
}

/** The part of a left room's history that one answer covers. */
export interface LeftRange extends Pick<RoomRange, 'after' | 'fullState'> {
  /** Account data events of the room as JSON texts. */
  readonly accountData: readonly string[];
}

/** The part of the streams that one answer covers. */
export interface AnswerRange {
  /** `undefined` for a first sync. */
  readonly since: number | undefined;
  readonly upTo: number;
  /** The changes in the range, from the user's feed; `undefined` when the feed does not reach back to `since`. */
  readonly changes: Changes | undefined;
  /** Whether to return the whole state of all rooms although the client knows them. */
  readonly fullState: boolean;
}
