import type { AccountDataEntry } from '../../account-data/index.ts';
import type { Filter } from '../../filters/index.ts';
import { RoomPart } from '../feeds/feed.ts';

/** Who syncs, and what they want. */
export interface Subject {
  readonly userId: string;
  readonly deviceId: string | undefined;
  readonly filter: Filter;
  /** Most events of each timeline. */
  readonly timelineLimit: number;
  /** Tell the state at the end of the timeline, in place of that before it (`use_state_after`). */
  readonly stateAfter: boolean;
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
  /** Send the whole state although the client knows the room. */
  readonly fullState: boolean;
}

/** Everything that a room may be asked for. */
export const everyPart = RoomPart.timeline | RoomPart.receipts | RoomPart.typing | RoomPart.accountData;
