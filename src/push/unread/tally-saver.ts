import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { type OwnedTally, saveTallies } from './store.ts';

/**
 * A tally is saved when so many events were evaluated since; so many at most are evaluated again after a restart,
 * besides those that were not evaluated at all.
 */
const worthSaving = 200;

/**
 * Milliseconds until tallies are saved: those to which events were added one by one, and those for which so many
 * events were evaluated at once that doing it again would cost a returning user.
 */
const [interval, soon] = [60_000, 1_000];

/** Number of waiting tallies that are saved at once. */
const maxWaiting = 1_000;

/** How many tallies go into one transaction. */
const batch = 500;

/** Saves tallies now and then, so that a restart does not cost the evaluation of all that is unread. */
export class TallySaver {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  #waiting = new Map<string, OwnedTally>();
  #timer: Timer | undefined;
  /** Monotonic milliseconds at which the timer ends. */
  #due = 0;
  #saving: Promise<void> | undefined;

  constructor({ database, clock, log }: { database: Database; clock: Clock; log: Logger }) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Queues a tally that has changed; it may be dropped from memory afterwards. @param evaluated the number of events
   * that were evaluated for this change
   */
  changed(key: string, owned: OwnedTally, evaluated: number): void {
    if (owned.tally.unsaved < worthSaving) return;
    this.#waiting.set(key, owned);
    if (this.#waiting.size >= maxWaiting) this.#begin();
    else this.#saveWithin(evaluated >= worthSaving ? soon : interval);
  }

  #saveWithin(time: number): void {
    const due = this.#clock.monotonic() + time;
    if (this.#timer && this.#due <= due) return;
    this.#timer?.cancel();
    this.#due = due;
    this.#timer = this.#clock.setTimer(time, () => this.#begin());
  }

  /** Saves everything that waits. */
  async stop(): Promise<void> {
    this.#begin();
    await this.#saving;
  }

  #begin(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#saving ??= this.#save().finally(() => {
      this.#saving = undefined;
    });
  }

  async #save(): Promise<void> {
    while (this.#waiting.size > 0) {
      const tallies = [...this.#waiting.values()];
      this.#waiting = new Map();
      for (const { tally } of tallies) tally.unsaved = 0;
      try {
        for (let start = 0; start < tallies.length; start += batch) {
          await saveTallies(this.#database, tallies.slice(start, start + batch));
        }
      } catch (error) {
        // Nothing is lost: what was not saved is evaluated again.
        this.#log.warn({ err: error }, 'unread tallies could not be saved');
      }
    }
  }
}
