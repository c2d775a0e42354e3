import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Feed } from './feed.ts';

/** Number of feeds that are woken in one turn of the event loop; their answers take a few milliseconds. */
const feedsAtOnce = 32;

/** Maximum number of milliseconds that a room's change waits for events that are being written. */
const maxHold = 10;

/** A change of a room that waits for a later event. */
interface Hold {
  /** Position of the later event. */
  readonly upTo: number;
  readonly timer: Timer;
}

/**
 * Wakes feeds a few at a time, so that a room with thousands of members does not block other requests; and
 * once for several events that are written at the same time, because an answer costs far more than an event
 * in it.
 */
export class WakeQueue {
  readonly #clock: Clock;
  readonly #listeners: (roomId: string) => Iterable<Feed>;
  readonly #due = new Set<Feed>();
  readonly #held = new Map<string, Hold>();
  #isWaking = false;

  /** @param listeners returns the feeds of a room's joined users */
  constructor(clock: Clock, listeners: (roomId: string) => Iterable<Feed>) {
    this.#clock = clock;
    this.#listeners = listeners;
  }

  wake(feeds: Iterable<Feed>): void {
    for (const feed of feeds) this.#due.add(feed);
    if (!this.#isWaking) this.#wakeSome();
  }

  /**
   * Wakes the feeds of a room. If a newer event of the room is about to be published, waits for that one, but
   * not for later ones.
   * @param current position up to which everything is published
   * @param newest position of the newest event of the room, which may not be published yet
   */
  wakeRoom(roomId: string, current: number, newest: number): void {
    const hold = this.#held.get(roomId);
    if (hold ? hold.upTo <= current : newest <= current) this.#release(roomId);
    else if (!hold) {
      const timer = this.#clock.setTimer(maxHold, () => this.#release(roomId));
      this.#held.set(roomId, { upTo: newest, timer });
    }
  }

  #release(roomId: string): void {
    this.#held.get(roomId)?.timer.cancel();
    this.#held.delete(roomId);
    this.wake(this.#listeners(roomId));
  }

  #wakeSome(): void {
    let woken = 0;
    for (const feed of this.#due) {
      this.#due.delete(feed);
      feed.wake();
      if (++woken === feedsAtOnce) break;
    }
    this.#isWaking = this.#due.size > 0;
    if (this.#isWaking) setImmediate(() => this.#wakeSome());
  }
}
