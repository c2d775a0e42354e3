import type { Clock } from '../clock.ts';
import { sleep } from '../clock.ts';
import type { Database } from '../database/database.ts';
import type { Logger } from '../observability/logger.ts';
import { type PositionTables, readCursor, writeCursor } from './store.ts';
import type { StreamReader } from './stream-reader.ts';

export interface FollowerOptions {
  /** Key of the cursor on disk; must never change. */
  readonly name: string;
  /** Handles all facts in `(after, upTo]`. Must be idempotent: after a crash it runs again for the same range. */
  readonly follow: (after: number, upTo: number) => Promise<void>;
  /** Position at which the follower starts when it has never run; by default the current one. */
  readonly startAt?: number;
  /**
   * Minimum milliseconds between two runs, so that a busy server does the work in larger pieces; by default 0. `caughtUp`
   * makes a run begin before the interval has passed.
   */
  readonly interval?: number;
  /**
   * Returns the position up to which all work is done, including work that continues after `follow` has
   * resolved. The cursor on disk does not pass it, so that later facts are handled again after a crash.
   */
  readonly settled?: () => number;
}

/** Milliseconds of the first backoff after a failure. */
const minBackoff = 100;

/** Maximum milliseconds of a backoff. */
const maxBackoff = 60_000;

/** Milliseconds that `caughtUpSoon` waits at most, for work that is usually done at once. */
const catchUpTimeout = 5_000;

/** Milliseconds between two writes of a busy follower's cursor; a crash repeats at most this much work. */
const cursorInterval = 1_000;

/** Follows the streams with a cursor on disk: after a crash, work is repeated and never skipped. */
export class Follower {
  readonly #streams: StreamReader;
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #options: FollowerOptions;
  readonly #stopping = new AbortController();
  #isStarted = false;
  #cursor = 0;
  #saved = { position: 0, at: 0 };
  #running: Promise<void> | undefined;
  #intervalEnd = new AbortController();
  #ranAt = Number.NEGATIVE_INFINITY;

  constructor(
    {
      streams,
      database,
      clock,
      log,
    }: { streams: StreamReader; database: Database; clock: Clock; log: Logger },
    options: FollowerOptions,
  ) {
    this.#streams = streams;
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
    this.#options = options;
  }

  /** Returns the position at which `start` begins: the end of the last run, if there was one. */
  async startingPoint(): Promise<number> {
    return (await this.#stored()) ?? this.#options.startAt ?? this.#streams.current;
  }

  /** Starts to follow where the last run ended. */
  async start(): Promise<void> {
    const stored = await this.#stored();
    this.#cursor = stored ?? this.#options.startAt ?? this.#streams.current;
    // Stored even when it is 0: after a crash, the next run starts here.
    if (stored === undefined) await writeCursor(this.#database, this.#options.name, this.#cursor);
    this.#isStarted = true;
    this.#streams.onAdvance(() => this.#wake());
    this.#wake();
  }

  /** Stops after the range that is being handled; later facts are handled after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#intervalEnd.abort();
    await this.#running;
    await this.#save();
  }

  /** Resolves when all facts up to the current position have been handled, or when the follower stops. */
  async caughtUp(): Promise<void> {
    const target = this.#streams.current;
    while (this.#cursor < target && !this.#stopping.signal.aborted) {
      this.#intervalEnd.abort();
      this.#wake();
      await this.#running;
    }
  }

  /**
   * Like `caughtUp`, but resolves after some seconds in any case. For readers of the follower's results that prefer stale
   * results to none, for instance while the results cannot be written. Resolves at once before `start`.
   */
  async caughtUpSoon(): Promise<void> {
    if (!this.#isStarted || this.#cursor >= this.#streams.current) return;
    const waiting = new AbortController();
    await Promise.race([this.caughtUp(), sleep(this.#clock, catchUpTimeout, waiting.signal)]);
    waiting.abort();
  }

  #stored(): Promise<number | undefined> {
    return readCursor(this.#database.reader<PositionTables>(), this.#options.name);
  }

  #wake(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      // Facts that arrived after the last check of the run did not start another run.
      if (this.#cursor < this.#streams.current && !this.#stopping.signal.aborted) this.#wake();
    });
  }

  async #run(): Promise<void> {
    // Waits for the next turn of the event loop, so that facts of one flush are handled together, after pending
    // commits.
    await new Promise(setImmediate);
    await this.#untilDue();
    let backoff = minBackoff;
    while (this.#cursor < this.#streams.current && !this.#stopping.signal.aborted) {
      const upTo = this.#streams.current;
      try {
        await this.#options.follow(this.#cursor, upTo);
        this.#cursor = upTo;
        if (this.#clock.monotonic() - this.#saved.at >= cursorInterval) await this.#save();
        backoff = minBackoff;
      } catch (error) {
        this.#log.error(
          { err: error, follower: this.#options.name, after: this.#cursor },
          'A follower of the streams failed, and is retried',
        );
        await sleep(this.#clock, backoff, this.#stopping.signal);
        backoff = Math.min(backoff * 2, maxBackoff);
      }
    }
  }

  /** Resolves when the minimum interval has passed, or at once when `caughtUp` is waiting. */
  async #untilDue(): Promise<void> {
    const { interval = 0 } = this.#options;
    const wait = this.#ranAt + interval - this.#clock.monotonic();
    if (wait > 0) await sleep(this.#clock, wait, this.#intervalEnd.signal);
    this.#intervalEnd = new AbortController();
    if (this.#stopping.signal.aborted) this.#intervalEnd.abort();
    this.#ranAt = this.#clock.monotonic();
  }

  async #save(): Promise<void> {
    const position = Math.min(this.#cursor, this.#options.settled?.() ?? this.#cursor);
    if (position === this.#saved.position) return;
    await writeCursor(this.#database, this.#options.name, position);
    this.#saved = { position, at: this.#clock.monotonic() };
  }
}
