import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { Evaluation } from './evaluation.ts';
import { type OwnedTally, saveTallies } from './store.ts';

/**
 * A tally is saved when this number of events was evaluated since it was saved last. After a restart at most this
 * number is evaluated again.
 */
const eventsBeforeSaving = 200;

/**
 * A tally is also saved when an evaluation has read at least this number of events from the database, as at the first
 * sync of a user who was away. After a restart, reading the tally is much cheaper than reading the events again.
 */
const readEventsBeforeSaving = 30;

/** Milliseconds until a changed tally is saved. */
const normalDelay = 60_000;

/** Milliseconds until a tally is saved after the evaluation of many events: they would take long to evaluate again. */
const shortDelay = 1_000;

/** When this number of tallies waits, all of them are saved without further delay. */
const maxWaiting = 1_000;

/** Maximum number of tallies in one transaction. */
const batchSize = 500;

/** Saves tallies (the unread events of users by room) from time to time, so that a restart does not cause the evaluation of all unread events. */
export class TallySaver {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  #waiting = new Map<string, OwnedTally>();
  #timer: Timer | undefined;
  /** When the timer ends, in monotonic milliseconds. */
  #due = 0;
  #saving: Promise<void> | undefined;

  constructor({ database, clock, log }: { database: Database; clock: Clock; log: Logger }) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Queues a changed tally if its events would take long to evaluate again; the caller may drop it from memory.
   * @param key identifies the user and the room of the tally
   * @param count the number of events that were evaluated for this change
   * @param readCount number of these events that were read from the database
   */
  queue(key: string, owned: OwnedTally, { count, readCount }: Pick<Evaluation, 'count' | 'readCount'>): void {
    const isCostly = count >= eventsBeforeSaving || readCount >= readEventsBeforeSaving;
    if (!isCostly && owned.tally.unsaved < eventsBeforeSaving) return;
    this.#waiting.set(key, owned);
    if (this.#waiting.size >= maxWaiting) this.#startSaving();
    else this.#saveWithin(isCostly ? shortDelay : normalDelay);
  }

  #saveWithin(time: number): void {
    const due = this.#clock.monotonic() + time;
    if (this.#timer && this.#due <= due) return;
    this.#timer?.cancel();
    this.#due = due;
    this.#timer = this.#clock.setTimer(time, () => this.#startSaving());
  }

  /** Saves all waiting tallies. */
  async stop(): Promise<void> {
    this.#startSaving();
    await this.#saving;
  }

  #startSaving(): void {
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
        for (let start = 0; start < tallies.length; start += batchSize) {
          await saveTallies(this.#database, tallies.slice(start, start + batchSize));
        }
      } catch (error) {
        // Nothing is lost: events after the saved position are evaluated again.
        this.#log.warn({ err: error }, 'Unread tallies could not be saved');
      }
    }
  }
}
