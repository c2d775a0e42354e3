import { type Clock, sleep } from '../clock.ts';
import type { Database } from './database.ts';

type Bounds = { number_bounds: { name: string; bound: number } };

/** Milliseconds for which a result is returned again, so that frequent health checks cause few writes. */
const validFor = 2_000;

/** Milliseconds after which a write that has not ended counts as failed. */
const timeout = 5_000;

/** A write did not end in time. */
export class WriteTimeout extends Error {
  override name = 'WriteTimeout';
}

/** Checks whether the database can be written, by writing to it. */
export class WriteCheck {
  readonly #database: Database;
  readonly #clock: Clock;
  #last: { readonly at: number; readonly result: Promise<unknown> } | undefined;
  #isWriting = false;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Resolves with `undefined` when writing works, otherwise with the error. */
  async error(): Promise<unknown> {
    if (!this.#last || (!this.#isWriting && this.#clock.monotonic() - this.#last.at > validFor)) {
      this.#isWriting = true;
      const result = this.#write()
        .then(
          () => undefined,
          (error: unknown) => error,
        )
        .finally(() => {
          this.#isWriting = false;
        });
      this.#last = { at: this.#clock.monotonic(), result };
    }
    const waiting = new AbortController();
    const late = sleep(this.#clock, timeout, waiting.signal).then(
      () => new WriteTimeout(`a write to the database did not end within ${timeout / 1_000} seconds`),
    );
    const error = await Promise.race([this.#last.result, late]);
    waiting.abort();
    return error;
  }

  /** Adds one to a value that is never read: only a change reaches the disk. */
  #write(): Promise<unknown> {
    return this.#database.transaction<Bounds, unknown>((writer) =>
      writer
        .insertInto('number_bounds')
        .values({ name: 'health', bound: 0 })
        .onConflict((conflict) =>
          conflict.column('name').doUpdateSet((eb) => ({ bound: eb('number_bounds.bound', '+', 1) })),
        )
        .execute(),
    );
  }
}
