import { whenReady } from '../../../kernel/when-ready.ts';
import { JoinedRooms } from '../rooms/joined-rooms.ts';
import { PlainTimelines } from '../rooms/plain-timelines.ts';

/**
 * Observes the syncs of a server in this process: counts the entries of rooms that are made the short way, with a plain
 * timeline or from memory alone, and can close that way.
 */
export class FastPath {
  /** Entries that were made the short way so far. */
  taken = 0;
  isClosed = false;
  readonly #render = JoinedRooms.prototype.render;
  readonly #find = PlainTimelines.prototype.find;

  constructor() {
    const way = this;
    const render = this.#render;
    const find = this.#find;
    let timelines = 0;
    JoinedRooms.prototype.render = function (...parameters) {
      const before = timelines;
      const entry = render.apply(this, parameters);
      if (typeof entry === 'string' && timelines === before && !way.isClosed) way.taken++;
      return entry;
    };
    PlainTimelines.prototype.find = function (...parameters) {
      timelines++;
      if (way.isClosed) return undefined;
      return whenReady(find.apply(this, parameters), (timeline) => {
        if (timeline !== undefined) way.taken++;
        return timeline;
      });
    };
  }

  /** Syncs that `work` makes go the long way. */
  async closedFor<T>(work: () => Promise<T>): Promise<T> {
    this.isClosed = true;
    try {
      return await work();
    } finally {
      this.isClosed = false;
    }
  }

  /** Ends the observation. */
  leave(): void {
    JoinedRooms.prototype.render = this.#render;
    PlainTimelines.prototype.find = this.#find;
  }
}
