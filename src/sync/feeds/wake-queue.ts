import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Feed } from './feed.ts';

/** Number of feeds that are woken in one turn of the event loop; their answers take a few milliseconds. */
const feedsAtOnce = 32;

/** Maximum number of milliseconds that a change of a room waits for events that are being written. */
const maxDelay = 10;

/** A change of a room that waits for a later event. */
interface DelayedWake {
  /** Position of the later event. */
  readonly upTo: number;
  readonly timer: Timer;
}

/**
 * Wakes feeds a few at a time, so that a room with thousands of members does not block other requests; and once for
 * several events that are written at the same time, because an answer costs far more than an event in it.
 */
export class WakeQueue {
  readonly #clock: Clock;
  readonly #listeners: (roomId: string) => Iterable<Feed>;
  /** Feeds that are to be woken. */
  readonly #due = new Set<Feed>();
  /** Delayed wakes by room id. */
  readonly #delayed = new Map<string, DelayedWake>();
  #isWaking = false;

  /** @param listeners returns the feeds of a room's joined users */
  constructor(clock: Clock, listeners: (roomId: string) => Iterable<Feed>) {
    this.#clock = clock;
    this.#listeners = listeners;
  }

  /** Wakes the requests that wait for changes of these feeds. */
  wake(feeds: Iterable<Feed>): void {
    for (const feed of feeds) this.#due.add(feed);
    if (!this.#isWaking) this.#wakeSome();
  }

  /**
   * Wakes the feeds of a room. If a newer event of the room is about to be published, waits for that event, but
   * not for later events.
   * @param current position up to which everything is published
   * @param newest position of the newest event of the room, which is possibly not published yet
   */
  wakeRoom(roomId: string, current: number, newest: number): void {
    const delayed = this.#delayed.get(roomId);
    if (delayed ? delayed.upTo <= current : newest <= current) this.#release(roomId);
    else if (!delayed) {
      const timer = this.#clock.setTimer(maxDelay, () => this.#release(roomId));
      this.#delayed.set(roomId, { upTo: newest, timer });
    }
  }

  #release(roomId: string): void {
    this.#delayed.get(roomId)?.timer.cancel();
    this.#delayed.delete(roomId);
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
