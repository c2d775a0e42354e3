import type { Clock } from '../../kernel/clock.ts';
import type { Logger, Metrics } from '../../kernel/observability/index.ts';
import type { Stall } from '../../kernel/process/index.ts';
import { ModuleContext, outsideOfCallbacks } from './module-context.ts';
import { callWithTimeLimit, isTimeLimit } from './time-limit.ts';

export interface ModuleCallsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics | undefined;
}

/** Milliseconds after which a callback counts as failed. */
export const callbackTimeout = 10_000;

/** Milliseconds of work without a pause after which a callback is reported: nothing else runs in that time. */
const blockingWarning = 100;

/** Milliseconds of work without a pause after which a callback is interrupted. */
const blockingLimit = 5_000;

/**
 * Maximum number of callbacks of one module that have not answered yet, including callbacks that have timed out. A
 * module with as many is not called.
 */
const maxUnanswered = 1_000;

/**
 * Why a callback has failed. `error`: it threw or rejected. `timeout`: it has not answered in time. `blocking`: it kept
 * the event loop busy. `answer`: its answer has the wrong type. `unanswered`: it was not called, because too many calls
 * of the module have no answer yet. `uncaught`: the module left an error uncaught.
 */
type FailureReason = 'error' | 'timeout' | 'blocking' | 'answer' | 'unanswered' | 'uncaught';

/** A callback of a module has failed; the log names the reason. */
export class CallbackFailure extends Error {
  override name = 'CallbackFailure';
}

/**
 * Calls the callbacks of modules, and bounds their time and their number. The log and the metric
 * `server_module_failures_total` name the callbacks that fail or block the process.
 */
export class ModuleCalls {
  readonly context = new ModuleContext();
  readonly #deps: ModuleCallsDeps;
  readonly #count: (module: string, callback: string, reason: FailureReason) => void;
  /** Number of callbacks without an answer, by module. */
  readonly #unanswered = new Map<string, number>();

  constructor(deps: ModuleCallsDeps) {
    this.#deps = deps;
    const failures = deps.metrics?.counter({
      name: 'server_module_failures_total',
      help: 'Callbacks of modules that failed (error, timeout, answer, unanswered, uncaught) or blocked the process (blocking)',
      labelNames: ['module', 'callback', 'reason'],
    });
    this.#count = (module, callback, reason) => failures?.inc({ module, callback, reason });
    const unanswered = this.#unanswered;
    deps.metrics?.gauge({
      name: 'server_module_unanswered_calls',
      help: 'Callbacks of modules that have not answered yet',
      labelNames: ['module'],
      collect() {
        for (const [module, count] of unanswered) this.set({ module }, count);
      },
    });
  }

  /**
   * Calls a callback.
   * @param module its name in the configuration
   * @param timeout milliseconds
   * @throws CallbackFailure when it throws, rejects, is interrupted or does not answer in time, and when it is not called
   * because too many calls of the module have no answer yet
   */
  async run<T>(
    module: string,
    callback: string,
    work: () => T | Promise<T>,
    timeout = callbackTimeout,
  ): Promise<T> {
    if ((this.#unanswered.get(module) ?? 0) >= maxUnanswered) {
      const reason = new Error(`${maxUnanswered} callbacks of the module have not answered`);
      throw this.failed(module, callback, 'unanswered', reason);
    }
    let answer: T | Promise<T>;
    const { clock } = this.#deps;
    const start = clock.monotonic();
    try {
      answer = callWithTimeLimit(() => this.context.run({ module, callback }, work), blockingLimit);
    } catch (error) {
      if (isTimeLimit(error)) throw this.failed(module, callback, 'blocking', error);
      this.#reportBlocking(module, callback, clock.monotonic() - start);
      throw this.failed(module, callback, 'error', error);
    }
    this.#reportBlocking(module, callback, clock.monotonic() - start);
    if (!isPromise(answer)) return answer;
    return this.#await(module, callback, answer, timeout);
  }

  /**
   * Logs and counts an uncaught error of a module: of a timer, a listener or a promise that it has left behind.
   * @returns whether the error is one of a module
   */
  claimUncaught(error: unknown): boolean {
    const owner = this.context.ownerOf(error);
    if (owner === undefined) return false;
    this.failed(owner.module, owner.callback, 'uncaught', error);
    return true;
  }

  /** Logs and counts a stall of the process in the code of a module: after an `await`, in a timer or in a listener. */
  claimStall({ frames }: Stall): void {
    for (const frame of frames) {
      const module = this.context.files.ownerOf(frame.replace(/:\d+$/, ''));
      if (module === undefined) continue;
      this.#count(module, outsideOfCallbacks, 'blocking');
      this.#deps.log.error({ module, frame }, 'A module blocked the process for seconds');
      return;
    }
  }

  /** Logs and counts a failure. @returns the error to throw */
  failed(module: string, callback: string, reason: FailureReason, cause: unknown): CallbackFailure {
    this.#count(module, callback, reason);
    this.#deps.log.error({ module, callback, reason, err: cause }, 'A callback of a module failed');
    return new CallbackFailure(`${callback} of the module ${module} failed`, { cause });
  }

  async #await<T>(module: string, callback: string, answer: Promise<T>, timeout: number): Promise<T> {
    this.#noteUnanswered(module, 1);
    const answered = () => this.#noteUnanswered(module, -1);
    answer.then(answered, answered);
    const { promise: late, reject } = Promise.withResolvers<never>();
    const tooLate = new Error(`No answer after ${timeout} ms`);
    const timer = this.#deps.clock.setTimer(timeout, () => reject(tooLate));
    try {
      return await Promise.race([answer, late]);
    } catch (error) {
      throw this.failed(module, callback, error === tooLate ? 'timeout' : 'error', error);
    } finally {
      timer.cancel();
    }
  }

  #noteUnanswered(module: string, change: 1 | -1): void {
    this.#unanswered.set(module, (this.#unanswered.get(module) ?? 0) + change);
  }

  #reportBlocking(module: string, callback: string, milliseconds: number): void {
    if (milliseconds <= blockingWarning) return;
    this.#count(module, callback, 'blocking');
    this.#deps.log.warn(
      { module, callback, ms: Math.round(milliseconds) },
      'A callback of a module blocked the process',
    );
  }
}

const isPromise = <T>(value: T | Promise<T>): value is Promise<T> =>
  typeof (value as Promise<T> | undefined)?.then === 'function';
