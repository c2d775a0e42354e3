import { RecentChanges } from '../../kernel/recent-changes.ts';

/** What has changed for a user in a range of the streams: bits of the timeline and of sources (`SourceList`). */
export interface Changes {
  /** By room id. */
  readonly rooms: ReadonlyMap<string, number>;
  /** Outside of rooms. */
  readonly user: number;
}

const nothing: Changes = { rooms: new Map(), user: 0 };

interface Entry {
  /** `undefined`: outside of rooms. */
  readonly roomId: string | undefined;
  readonly parts: number;
}

/** How many changes a feed remembers; who comes later than that is looked up in the database. */
const capacity = 1_024;

/** Of how many of a user's devices it is remembered what an answer without news says. */
const quietDevices = 100;

/**
 * What has changed lately for one user who syncs, so that a sync costs what has changed and not how many rooms they
 * are in; and those of the user's requests that wait for more.
 */
export class Feed {
  readonly userId: string;
  readonly #recent: RecentChanges<Entry>;
  #waiting = new Set<() => void>();
  /** By device: what each answer says, until something changes for the user. */
  readonly #quiet = new Map<string | undefined, string>();

  constructor(userId: string, floor: number) {
    this.userId = userId;
    this.#recent = new RecentChanges(floor, capacity);
  }

  /** What every answer says to a device that has no messages, as `remember` was told since the user's last change. */
  constantMembers(deviceId: string | undefined): string | undefined {
    return this.#quiet.get(deviceId);
  }

  rememberConstantMembers(deviceId: string | undefined, text: string): void {
    if (this.#quiet.size >= quietDevices) this.#quiet.clear();
    this.#quiet.set(deviceId, text);
  }

  add(position: number, roomId: string | undefined, parts: number): void {
    if (roomId === undefined) this.#quiet.clear();
    this.#recent.add({ roomId, parts }, position);
  }

  /** What has changed in `(after, upTo]`; `undefined` when the feed does not reach back that far. */
  changes(after: number, upTo: number): Changes | undefined {
    if (this.#recent.isUnchangedSince(after)) return nothing;
    const entries = this.#recent.between(after, upTo);
    if (!entries) return undefined;
    const rooms = new Map<string, number>();
    let user = 0;
    // The room that changed last comes first.
    for (const { roomId, parts } of entries.reverse()) {
      if (roomId === undefined) user |= parts;
      else rooms.set(roomId, (rooms.get(roomId) ?? 0) | parts);
    }
    return { rooms, user };
  }

  /** Lets everybody who waits look again. */
  wake(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const resume of waiting) resume();
  }

  /** Calls `resume` once, at the next change. @returns a function that takes it back. */
  onChange(resume: () => void): () => void {
    this.#waiting.add(resume);
    return () => this.#waiting.delete(resume);
  }
}
