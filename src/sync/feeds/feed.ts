import { RecentChanges } from '../../kernel/recent-changes.ts';

/** The changes for a user in a range of the streams: bits of the timeline and of sources (`SourceList`). */
export interface Changes {
  /** Changed bits by room id. */
  readonly rooms: ReadonlyMap<string, number>;
  /** Changed bits of data outside of rooms. */
  readonly user: number;
}

const nothing: Changes = { rooms: new Map(), user: 0 };

interface Entry {
  /** `undefined` for a change outside of rooms. */
  readonly roomId: string | undefined;
  readonly changedBits: number;
}

/** Minimum number of changes that a feed caches; older changes are read from the database. */
const capacity = 1_024;

/** Estimated bytes of a feed without changes. */
const feedBytes = 1_000;

/** Estimated bytes of a change. */
const changeBytes = 64;

/** Number of changes between two counts of the bytes of a feed. */
const changesPerMeasure = 64;

/** Maximum number of a user's devices whose constant fields are cached. A further device empties the cache. */
const maxDevices = 100;

/**
 * The recent changes of one user who syncs, so that the cost of a sync depends on the changes and not on the
 * number of rooms; and the user's requests that wait for a change.
 */
export class Feed {
  readonly userId: string;
  readonly #recent: RecentChanges<Entry>;
  readonly #onGrowth: () => void;
  #added = 0;
  #waiting = new Set<() => void>();
  /** The fields that every answer to a device has, by device id; empty after a change outside of rooms. */
  readonly #constantFields = new Map<string | undefined, string>();

  /**
   * @param floor position after which the feed receives all changes
   * @param onGrowth called after each `changesPerMeasure` changes, so that `bytes` is counted again
   */
  constructor(userId: string, floor: number, onGrowth: () => void = () => {}) {
    this.userId = userId;
    this.#onGrowth = onGrowth;
    this.#recent = new RecentChanges(floor, capacity);
  }

  /**
   * Returns the fields that every answer to a device has, if they were cached since the last change outside of rooms.
   */
  constantFields(deviceId: string | undefined): string | undefined {
    return this.#constantFields.get(deviceId);
  }

  /** Caches the fields that every answer to a device has. */
  rememberConstantFields(deviceId: string | undefined, text: string): void {
    if (this.#constantFields.size >= maxDevices) this.#constantFields.clear();
    this.#constantFields.set(deviceId, text);
  }

  /** Adds a change at a position of the streams. @param roomId `undefined` for a change outside of rooms */
  add(position: number, roomId: string | undefined, changedBits: number): void {
    if (roomId === undefined) this.#constantFields.clear();
    this.#recent.add({ roomId, changedBits }, position);
    this.#added++;
    if (this.#added % changesPerMeasure === 0) this.#onGrowth();
  }

  /** Estimated bytes of this feed in memory. */
  get bytes(): number {
    let characters = 0;
    for (const text of this.#constantFields.values()) characters += text.length;
    return feedBytes + changeBytes * this.#recent.count + characters;
  }

  /** Returns the changes in `(after, upTo]`; `undefined` when some of them are no longer in the feed. */
  changes(after: number, upTo: number): Changes | undefined {
    if (this.#recent.isUnchangedSince(after)) return nothing;
    const entries = this.#recent.between(after, upTo);
    if (!entries) return undefined;
    const rooms = new Map<string, number>();
    let user = 0;
    // The room that changed last comes first.
    for (const { roomId, changedBits } of entries.reverse()) {
      if (roomId === undefined) user |= changedBits;
      else rooms.set(roomId, (rooms.get(roomId) ?? 0) | changedBits);
    }
    return { rooms, user };
  }

  /** Wakes all waiting requests. */
  wake(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const resume of waiting) resume();
  }

  /**
   * Calls `resume` once, at the next change.
   * @returns a function that cancels the call
   */
  onChange(resume: () => void): () => void {
    this.#waiting.add(resume);
    return () => this.#waiting.delete(resume);
  }
}
