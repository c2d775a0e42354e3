import type { Clock } from '../clock.ts';
import { sleep } from '../clock.ts';
import type { Database } from '../database/database.ts';
import type { Logger } from '../observability/logger.ts';
import { type PositionTables, readCursor, writeCursor } from './store.ts';
import type { StreamReader } from './stream-reader.ts';

export interface FollowerOptions {
  /** Names the cursor on disk; never change it. */
  readonly name: string;
  /** Handles all facts in `(after, upTo]`. Runs again for the same range after a crash: it must be idempotent. */
  readonly follow: (after: number, upTo: number) => Promise<void>;
  /** Where a follower starts that has never run; by default at the current position. */
  readonly startAt?: number;
  /**
   * Milliseconds from one run to the next at least, so that a busy server does the work in larger pieces; `caughtUp`
   * does not wait for them. By default 0.
   */
  readonly interval?: number;
  /**
   * For one whose work goes on after `follow`: up to where it is done. The cursor on disk does not pass it, so that
   * the rest is handled again after a crash.
   */
  readonly settled?: () => number;
}

/** Milliseconds between attempts after a failure: first and longest. */
const [firstPause, longestPause] = [100, 60_000];

/** Milliseconds of `caughtUpSoon`: a busy machine may take some for what is usually done at once. */
const patience = 5_000;

/** Milliseconds between two writes of a busy follower's cursor; a crash repeats at most this much work. */
const cursorInterval = 1_000;

/** Follows the streams with a cursor on disk: after a crash work is repeated, never skipped. */
export class Follower {
  readonly #streams: StreamReader;
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #options: FollowerOptions;
  readonly #stopping = new AbortController();
  #cursor = 0;
  #saved = { position: 0, at: 0 };
  #running: Promise<void> | undefined;
  #hurry = new AbortController();
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

  /** Where the last run ended; where this one begins if there was none. */
  async startingPoint(): Promise<number> {
    return (await this.#stored()) ?? this.#options.startAt ?? this.#streams.current;
  }

  /** Takes up where the last run ended. */
  async start(): Promise<void> {
    const stored = await this.#stored();
    this.#cursor = stored ?? this.#options.startAt ?? this.#streams.current;
    // At zero too: after a crash, it is from here that the next run goes on.
    if (stored === undefined) await writeCursor(this.#database, this.#options.name, this.#cursor);
    this.#streams.onAdvance(() => this.#wake());
    this.#wake();
  }

  /** Waits for the range at work; what is left is done after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#hurry.abort();
    await this.#running;
    await this.#save();
  }

  /** Resolves when everything up to the position that is current now has been handled. */
  async caughtUp(): Promise<void> {
    const target = this.#streams.current;
    while (this.#cursor < target && !this.#stopping.signal.aborted) {
      this.#hurry.abort();
      this.#wake();
      await this.#running;
    }
  }

  /**
   * `caughtUp` for those who read what follows and would rather have most of it than none, as when it can not be
   * written: after some seconds they are not kept any longer.
   */
  async caughtUpSoon(): Promise<void> {
    if (this.#cursor >= this.#streams.current) return;
    const waiting = new AbortController();
    await Promise.race([this.caughtUp(), sleep(this.#clock, patience, waiting.signal)]);
    waiting.abort();
  }

  #stored(): Promise<number | undefined> {
    return readCursor(this.#database.reader<PositionTables>(), this.#options.name);
  }

  #wake(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      // What has happened since the run looked for the last time has woken nobody.
      if (this.#cursor < this.#streams.current && !this.#stopping.signal.aborted) this.#wake();
    });
  }

  async #run(): Promise<void> {
    // One turn of the event loop later: facts of one flush are handled together, and commits do not wait for us.
    await new Promise(setImmediate);
    await this.#untilDue();
    let pause = firstPause;
    while (this.#cursor < this.#streams.current && !this.#stopping.signal.aborted) {
      const upTo = this.#streams.current;
      try {
        await this.#options.follow(this.#cursor, upTo);
        this.#cursor = upTo;
        if (this.#clock.monotonic() - this.#saved.at >= cursorInterval) await this.#save();
        pause = firstPause;
      } catch (error) {
        this.#log.error({ err: error, follower: this.#options.name, after: this.#cursor }, 'follower failed');
        await sleep(this.#clock, pause, this.#stopping.signal);
        pause = Math.min(pause * 2, longestPause);
      }
    }
  }

  /** Resolves when the last run is long enough ago, or somebody waits for this one. */
  async #untilDue(): Promise<void> {
    const { interval = 0 } = this.#options;
    const wait = this.#ranAt + interval - this.#clock.monotonic();
    if (wait > 0) await sleep(this.#clock, wait, this.#hurry.signal);
    this.#hurry = new AbortController();
    if (this.#stopping.signal.aborted) this.#hurry.abort();
    this.#ranAt = this.#clock.monotonic();
  }

  async #save(): Promise<void> {
    const position = Math.min(this.#cursor, this.#options.settled?.() ?? this.#cursor);
    if (position === this.#saved.position) return;
    await writeCursor(this.#database, this.#options.name, position);
    this.#saved = { position, at: this.#clock.monotonic() };
  }
}
