import { RecentlyUsed } from '../kernel/caches/index.ts';
import type { PlacedReceipt } from './receipt.ts';

/** Of how many rooms receipts are remembered, and how many of each room. */
const [roomsRemembered, perRoom] = [10_000, 500];

/** The newest receipts of one room, oldest first. */
interface Log {
  entries: PlacedReceipt[];
  /** Receipts up to here may have been dropped. */
  floor: number;
}

/** The receipts that were given lately, so that a sync need not ask the database for them. */
export class RecentReceipts {
  readonly #rooms: RecentlyUsed<string, Log>;
  /** Receipts up to here may be missing in rooms that are not remembered. */
  #floor: number;

  /** @param floor the position from which on it is told of all receipts */
  constructor(floor: number) {
    this.#floor = floor;
    this.#rooms = new RecentlyUsed({
      max: roomsRemembered,
      dispose: ({ entries }, _roomId, reason) => {
        if (reason === 'evict') this.#floor = Math.max(this.#floor, entries.at(-1)?.position ?? 0);
      },
    });
  }

  add(receipt: PlacedReceipt): void {
    const log = this.#rooms.get(receipt.roomId);
    if (!log) {
      this.#rooms.set(receipt.roomId, { entries: [receipt], floor: this.#floor });
      return;
    }
    log.entries.push(receipt);
    if (log.entries.length < perRoom * 2) return;
    const dropped = log.entries.splice(0, perRoom);
    log.floor = dropped.at(-1)?.position ?? log.floor;
  }

  /** The receipts in `(after, upTo]`, newest first; `undefined` when they are not all remembered. */
  between(roomId: string, after: number, upTo: number): PlacedReceipt[] | undefined {
    const log = this.#rooms.get(roomId);
    if (after < (log?.floor ?? this.#floor)) return undefined;
    const found: PlacedReceipt[] = [];
    for (let index = (log?.entries.length ?? 0) - 1; index >= 0; index--) {
      const entry = log?.entries[index];
      if (!entry || entry.position <= after) break;
      if (entry.position <= upTo) found.push(entry);
    }
    return found;
  }
}
