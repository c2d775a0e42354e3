import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Feed } from './feed.ts';

/** Feeds that are woken in one turn of the event loop; what those who wait on them are told takes a few milliseconds. */
const feedsAtOnce = 32;

/** Milliseconds for which a room's news wait for those that are being written, at the most. */
const longestHold = 10;

/** News of a room that wait for more. */
interface Hold {
  /** The position of what they wait for. */
  readonly upTo: number;
  readonly timer: Timer;
}

/**
 * When those who wait are woken: a few at a time, so that a room of thousands does not keep everybody else waiting; and
 * when several messages come at once, once for all of them, since an answer costs far more than a message in it.
 */
export class WakeQueue {
  readonly #clock: Clock;
  readonly #listeners: (roomId: string) => Iterable<Feed>;
  readonly #due = new Set<Feed>();
  readonly #held = new Map<string, Hold>();
  #isWaking = false;

  /** @param listeners the feeds that hear of a room */
  constructor(clock: Clock, listeners: (roomId: string) => Iterable<Feed>) {
    this.#clock = clock;
    this.#listeners = listeners;
  }

  wake(feeds: Iterable<Feed>): void {
    for (const feed of feeds) this.#due.add(feed);
    if (!this.#isWaking) this.#wakeSome();
  }

  /**
   * Wakes all who hear of a room. When something newer is about to be published there, that is waited for, but not what
   * comes after it.
   * @param current everything up to here is published
   * @param newest the position of the newest event of the room, which may not be published yet
   */
  wakeRoom(roomId: string, current: number, newest: number): void {
    const hold = this.#held.get(roomId);
    if (hold ? hold.upTo <= current : newest <= current) this.#release(roomId);
    else if (!hold) {
      const timer = this.#clock.setTimer(longestHold, () => this.#release(roomId));
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
