import type { Filter } from '../../filters/index.ts';
import type { AccountDataItem } from '../../sync-contract/index.ts';
import type { Changes } from '../feeds/feed.ts';

/**
 * Under which name the state at the end of a timeline is told: that of the specification, or the one that clients which
 * asked for it before the specification had it still look for. Source: MSC4222, "Unstable prefix".
 */
export type StateAfter = 'state_after' | 'org.matrix.msc4222.state_after';

/** Who syncs, and what they want. */
export interface Recipient {
  readonly userId: string;
  readonly deviceId: string | undefined;
  readonly filter: Filter;
  /** Most events of each timeline. */
  readonly timelineLimit: number;
  /** Tell the state at the end of the timeline, in place of that before it (`use_state_after`). */
  readonly stateAfter: StateAfter | undefined;
}

/** Which part of a room's history one answer is about. */
export interface RoomRange {
  /** `undefined`: the room is new to the client and it gets the whole state. */
  readonly after: number | undefined;
  readonly upTo: number;
  /** The user has come back into a room of which the client may hold a timeline up to here: of a stay before. */
  readonly returnedAfter: number | undefined;
  /** What may have changed: bits of the timeline and of sources. */
  readonly parts: number;
  /** What has changed for the user, in whichever room. */
  readonly accountData: readonly AccountDataItem[];
  /** Ephemeral events of a room that is new to the client, as JSON text, by the type of the events. */
  readonly initialEphemeral: ReadonlyMap<string, readonly string[]>;
  /** Send the whole state although the client knows the room. */
  readonly fullState: boolean;
}

/** Which part of the history of a room that the user has left one answer is about. */
export interface LeftRange extends Pick<RoomRange, 'after' | 'fullState'> {
  /** As JSON text. */
  readonly accountData: readonly string[];
}

/** Which part of the streams one answer is about. */
export interface AnswerRange {
  /** `undefined` for a first sync. */
  readonly since: number | undefined;
  readonly upTo: number;
  /** What the feed says that has changed; `undefined` when it does not reach back that far. */
  readonly changes: Changes | undefined;
  /** Send the whole state of all rooms although the client knows them. */
  readonly fullState: boolean;
}
