import type { Clock } from '../../kernel/clock.ts';
import type { Logger, Metrics } from '../../kernel/observability/index.ts';

export interface ModuleCallsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics | undefined;
}

/** Milliseconds after which a callback counts as failed. */
export const callbackTimeout = 10_000;

/** Milliseconds of work without a pause after which a callback is reported: nothing else runs in that time. */
const maxBlocking = 100;

type FailureReason = 'error' | 'timeout' | 'blocking' | 'answer';

/** A callback of a module has failed; the log names the reason. */
export class CallbackFailure extends Error {
  override name = 'CallbackFailure';
}

/**
 * Calls the callbacks of modules: bounds their time, and names those that fail or block the process in the log and in the
 * metric `server_module_failures_total`.
 */
export class ModuleCalls {
  readonly #deps: ModuleCallsDeps;
  readonly #count: (module: string, callback: string, reason: FailureReason) => void;

  constructor(deps: ModuleCallsDeps) {
    this.#deps = deps;
    const failures = deps.metrics?.counter({
      name: 'server_module_failures_total',
      help: 'Callbacks of modules that failed (error, timeout, answer) or blocked the process (blocking)',
      labelNames: ['module', 'callback', 'reason'],
    });
    this.#count = (module, callback, reason) => failures?.inc({ module, callback, reason });
  }

  /**
   * Calls a callback.
   * @param module its name in the configuration
   * @param timeout milliseconds
   * @throws CallbackFailure when it throws, rejects, or does not answer in time
   */
  async run<T>(
    module: string,
    callback: string,
    work: () => T | Promise<T>,
    timeout = callbackTimeout,
  ): Promise<T> {
    let answer: T | Promise<T>;
    const { clock } = this.#deps;
    const start = clock.monotonic();
    try {
      answer = work();
    } catch (error) {
      throw this.failed(module, callback, 'error', error);
    } finally {
      this.#reportBlocking(module, callback, clock.monotonic() - start);
    }
    if (!isPromise(answer)) return answer;
    return this.#await(module, callback, answer, timeout);
  }

  /** Logs and counts a failure. @returns the error to throw */
  failed(module: string, callback: string, reason: FailureReason, cause: unknown): CallbackFailure {
    this.#count(module, callback, reason);
    this.#deps.log.error({ module, callback, reason, err: cause }, 'A callback of a module failed');
    return new CallbackFailure(`${callback} of the module ${module} failed`, { cause });
  }

  async #await<T>(module: string, callback: string, answer: Promise<T>, timeout: number): Promise<T> {
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

  #reportBlocking(module: string, callback: string, milliseconds: number): void {
    if (milliseconds <= maxBlocking) return;
    this.#count(module, callback, 'blocking');
    this.#deps.log.warn(
      { module, callback, ms: Math.round(milliseconds) },
      'A callback of a module blocked the process',
    );
  }
}

const isPromise = <T>(value: T | Promise<T>): value is Promise<T> =>
  typeof (value as Promise<T> | undefined)?.then === 'function';
