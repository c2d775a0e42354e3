import type { Clock, Timer } from '../../../kernel/clock.ts';

/** Milliseconds between two rounds. */
const interval = 100;

/** Number of destinations in a round. */
const perRound = 10;

/**
 * Destinations with EDUs or missed events that are not urgent. A few destinations at a time get their turn, so that this
 * traffic does not delay urgent traffic.
 */
export class LazyQueue {
  readonly #clock: Clock;
  readonly #onTurn: (destination: string) => void;
  readonly #pending = new Set<string>();
  #timer: Timer | undefined;

  constructor(clock: Clock, onTurn: (destination: string) => void) {
    this.#clock = clock;
    this.#onTurn = onTurn;
  }

  /** Adds a destination, unless it waits already. */
  add(destination: string): void {
    this.#pending.add(destination);
    this.#timer ??= this.#clock.setTimer(interval, () => this.#round());
  }

  /** Drops the waiting destinations. */
  stop(): void {
    this.#timer?.cancel();
    this.#pending.clear();
  }

  #round(): void {
    this.#timer = undefined;
    let remaining = perRound;
    for (const destination of this.#pending) {
      if (remaining-- === 0) break;
      this.#pending.delete(destination);
      this.#onTurn(destination);
    }
    if (this.#pending.size > 0) this.#timer = this.#clock.setTimer(interval, () => this.#round());
  }
}
