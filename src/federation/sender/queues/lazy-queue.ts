import type { Clock, Timer } from '../../../kernel/clock.ts';

/** Milliseconds between two rounds, and how many destinations have their turn in each. */
const [interval, perRound] = [100, 10];

/** Destinations that are not in a hurry: they have their turn one after the other, so that nobody else has to wait. */
export class LazyQueue {
  readonly #clock: Clock;
  readonly #turn: (destination: string) => void;
  readonly #waiting = new Set<string>();
  #timer: Timer | undefined;

  constructor(clock: Clock, turn: (destination: string) => void) {
    this.#clock = clock;
    this.#turn = turn;
  }

  add(destination: string): void {
    this.#waiting.add(destination);
    this.#timer ??= this.#clock.setTimer(interval, () => this.#round());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#waiting.clear();
  }

  #round(): void {
    this.#timer = undefined;
    let left = perRound;
    for (const destination of this.#waiting) {
      if (left-- === 0) break;
      this.#waiting.delete(destination);
      this.#turn(destination);
    }
    if (this.#waiting.size > 0) this.#timer = this.#clock.setTimer(interval, () => this.#round());
  }
}
