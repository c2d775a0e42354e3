import { whenReady } from '../../../kernel/when-ready.ts';
import { JoinedRooms } from '../rooms/joined-rooms.ts';
import { PlainTimelines } from '../rooms/plain-timelines.ts';

/**
 * Observes the syncs of a server in this process: records the rooms whose entries take the fast path, which reads
 * memory only, and can close that path.
 */
export class FastPath {
  /** Number of entries that took the fast path. */
  taken = 0;
  #isClosed = false;
  readonly #rooms = new Set<string>();
  readonly #render = JoinedRooms.prototype.render;
  readonly #find = PlainTimelines.prototype.find;

  constructor() {
    const path = this;
    const render = this.#render;
    const find = this.#find;
    let timelines = 0;
    JoinedRooms.prototype.render = function (head, ...parameters) {
      const before = timelines;
      const entry = render.call(this, head, ...parameters);
      if (typeof entry === 'string' && timelines === before) path.#record(head.roomId);
      return entry;
    };
    PlainTimelines.prototype.find = function (head, ...parameters) {
      timelines++;
      if (path.#isClosed) return undefined;
      return whenReady(find.call(this, head, ...parameters), (timeline) => {
        if (timeline !== undefined) path.#record(head.roomId);
        return timeline;
      });
    };
  }

  #record(roomId: string): void {
    if (this.#isClosed) return;
    this.taken++;
    this.#rooms.add(roomId);
  }

  /** Runs one sync. @returns its answer, and the ids of the rooms whose entries took the fast path */
  async observe<T>(sync: () => Promise<T>): Promise<{ answer: T; fastRooms: ReadonlySet<string> }> {
    this.#rooms.clear();
    const answer = await sync();
    return { answer, fastRooms: new Set(this.#rooms) };
  }

  /** Runs work whose syncs do not take the fast path. */
  async closedFor<T>(work: () => Promise<T>): Promise<T> {
    this.#isClosed = true;
    try {
      return await work();
    } finally {
      this.#isClosed = false;
    }
  }

  /** Ends the observation. */
  stop(): void {
    JoinedRooms.prototype.render = this.#render;
    PlainTimelines.prototype.find = this.#find;
  }
}
