import { RecentlyUsed } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';

/** Events that are remembered, and for how many milliseconds; keys that could not be had may be there soon. */
const [maxRemembered, remembered, withoutKey] = [20_000, 60 * 60_000, 5_000];

/**
 * Events that a server has given and that may not be used, so that it is not asked for them again and again. Another
 * server may have the same event with its signatures intact.
 */
export class InvalidEvents {
  readonly #clock: Clock;
  readonly #until = new RecentlyUsed<string, number>({ max: maxRemembered });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(server: string, eventId: string): boolean {
    return (this.#until.get(nameOf(server, eventId)) ?? 0) > this.#clock.now();
  }

  /** @param isPassing whether nothing is wrong with the event but that a key could not be had */
  add(server: string, eventId: string, isPassing: boolean): void {
    this.#until.set(nameOf(server, eventId), this.#clock.now() + (isPassing ? withoutKey : remembered));
  }
}

/** Server names hold no space. */
const nameOf = (server: string, eventId: string) => `${server} ${eventId}`;
