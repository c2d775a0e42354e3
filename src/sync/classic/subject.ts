import type { AccountDataEntry } from '../../account-data/index.ts';
import type { Filter } from '../../filters/index.ts';
import type { ReceiptContent } from '../../receipts/index.ts';
import { RoomPart } from '../feeds/feed.ts';

/**
 * Under which name the state at the end of a timeline is told: that of the specification, or the one that clients which
 * asked for it before the specification had it still look for. Source: MSC4222, "Unstable prefix".
 */
export type StateAfter = 'state_after' | 'org.matrix.msc4222.state_after';

/** Who syncs, and what they want. */
export interface Subject {
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
  /** Bits of `RoomPart`: what may have changed. */
  readonly parts: number;
  readonly accountData: readonly Pick<AccountDataEntry, 'type' | 'content'>[];
  /** All that are told of a room that is new to the client: contents of `m.receipt`. */
  readonly receipts: readonly ReceiptContent[];
  /** Send the whole state although the client knows the room. */
  readonly fullState: boolean;
}

/** Which part of the history of a room that the user has left one answer is about. */
export interface LeftRange extends Pick<RoomRange, 'after' | 'fullState'> {
  /** As JSON text. */
  readonly accountData: readonly string[];
}

/** Everything that a room may be asked for. */
export const everyPart = RoomPart.timeline | RoomPart.receipts | RoomPart.typing | RoomPart.accountData;
