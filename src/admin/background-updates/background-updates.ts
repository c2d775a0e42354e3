import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { JobAttempt, Jobs } from '../../kernel/jobs/index.ts';
import { invalidParam, MatrixError } from '../../protocol/index.ts';
import type { BackgroundUpdate } from './background-update.ts';

export interface BackgroundUpdatesDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  /**
   * Runs before each batch; supplied by modules.
   * @returns a function that is called after the batch, even when the batch has failed
   */
  readonly beforeUpdateBatch?: ((batch: StartedUpdate) => Promise<() => void>) | undefined;
  /** Chooses the number of rows of the next batch; supplied by modules. `undefined` means the default. */
  readonly updateBatchSize?: ((batch: StartedUpdate) => Promise<number | undefined>) | undefined;
}

/** Number of rows in a batch if no module chooses it. */
const defaultBatchSize = 50;

/** An update that runs or waits. Times are milliseconds. */
export interface StartedUpdate {
  readonly name: string;
  /** Number of processed rows. */
  readonly rows: number;
  /** Time that the batches have taken, without the pauses between them. */
  readonly duration: number;
}

/** The payload of the job: its progress. */
type Progress = {
  /** Key of the last row of the last batch; null before the first batch. */
  readonly after: string | null;
  readonly rows: number;
  /** Null before the rows have been counted. */
  readonly total: number | null;
  readonly duration: number;
};

const job = 'admin/background-update';

/** Milliseconds for which `GET /_server/admin/v1/scheduled_tasks` lists a finished update. */
const statusLifetime = 7 * 24 * 3_600_000;

/** Runs updates one after the other, as jobs, so that they continue after a restart. */
export class BackgroundUpdates {
  readonly #deps: BackgroundUpdatesDeps;
  /** By name. */
  readonly #updates: ReadonlyMap<string, BackgroundUpdate>;
  /** Resolves when updates are enabled again; `undefined` while they are enabled. */
  #paused: PromiseWithResolvers<void> | undefined;

  /** Registers the job of the updates. Must be called before jobs are started. */
  constructor(deps: BackgroundUpdatesDeps, updates: readonly BackgroundUpdate[]) {
    this.#deps = deps;
    this.#updates = new Map(updates.map((update) => [update.name, update]));
    deps.jobs.register<Progress>(job, {
      run: (attempt) => this.#run(attempt),
      parallel: 1,
      keep: statusLifetime,
      progressOf: ({ rows, total }) => ({ done: rows, total: total === null ? null : Math.max(rows, total) }),
    });
  }

  get isEnabled(): boolean {
    return this.#paused === undefined;
  }

  /** Pauses updates after their current batch, or continues them. A restart of the server continues them, too. */
  setEnabled(isEnabled: boolean): void {
    if (!isEnabled) this.#paused ??= Promise.withResolvers();
    else {
      this.#paused?.resolve();
      this.#paused = undefined;
    }
  }

  /** Starts an update. @throws MatrixError 400 M_INVALID_PARAM for unknown names, 400 M_UNKNOWN while it runs or waits */
  async start(name: string): Promise<void> {
    const { database, clock, jobs } = this.#deps;
    if (!this.#updates.has(name)) {
      throw invalidParam(`'job_name' must be one of: ${[...this.#updates.keys()].join(', ')}`);
    }
    const [existing] = await jobs.list({ kind: job, key: name, state: 'waiting', limit: 1 });
    if (existing) throw new MatrixError(400, 'M_UNKNOWN', 'This update is running or waiting already');
    const payload: Progress = { after: null, rows: 0, total: null, duration: 0 };
    await database.transaction((writer) =>
      jobs.schedule(writer, { kind: job, key: name, payload, runAt: clock.now() }),
    );
  }

  /** Returns the update that runs, or else the first that waits; `undefined` when there is none. */
  async current(): Promise<StartedUpdate | undefined> {
    const waiting = await this.#deps.jobs.list({ kind: job, state: 'waiting' });
    const found = waiting.find(({ running }) => running) ?? waiting[0];
    if (found === undefined) return undefined;
    const { rows, duration } = found.payload as Progress;
    return { name: found.key ?? '', rows, duration };
  }

  async #run({ key, payload, signal, progress }: JobAttempt<Progress>): Promise<Progress> {
    const { clock, beforeUpdateBatch, updateBatchSize } = this.#deps;
    const update = this.#updates.get(key ?? '');
    if (update === undefined) throw new Error(`unknown update: ${key}`);
    let state = payload;
    if (state.total === null) {
      state = { ...state, total: await update.count() };
      await progress(state);
    }
    for (;;) {
      await this.#enabled(signal);
      const began = clock.monotonic();
      const running = { name: update.name, rows: state.rows, duration: state.duration };
      const afterBatch = await beforeUpdateBatch?.(running);
      let batch: Awaited<ReturnType<BackgroundUpdate['next']>>;
      try {
        const size = (await updateBatchSize?.(running)) ?? defaultBatchSize;
        batch = await update.next(state.after, size);
      } finally {
        afterBatch?.();
      }
      if (batch === undefined) return state;
      const duration = state.duration + (clock.monotonic() - began);
      state = { ...state, after: batch.last, rows: state.rows + batch.rows, duration };
      await progress(state);
    }
  }

  /** Resolves when updates are enabled. @throws Error when the server stops */
  async #enabled(signal: AbortSignal): Promise<void> {
    while (this.#paused !== undefined && !signal.aborted) {
      const aborted = Promise.withResolvers<void>();
      const stop = () => aborted.resolve();
      signal.addEventListener('abort', stop, { once: true });
      await Promise.race([this.#paused.promise, aborted.promise]);
      signal.removeEventListener('abort', stop);
    }
    signal.throwIfAborted();
  }
}
