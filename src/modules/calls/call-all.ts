import type { MatrixError } from '../../protocol/index.ts';
import type { Decision } from '../api/index.ts';
import type { ModuleCallbacks } from '../registered-callbacks.ts';
import { decide } from './decide.ts';
import { CallbackFailure, type ModuleCalls } from './module-calls.ts';

/**
 * Calls a check of all modules, one after the other, until one denies.
 * @param name the name of the callback, for the log
 * @param found the modules that have the check
 * @param call calls the check of one module
 * @param timeout milliseconds
 * @returns the error for the client; `undefined` when all allow
 */
export async function firstDenial<T>(
  calls: ModuleCalls,
  name: string,
  found: readonly ModuleCallbacks<T>[],
  call: (callback: T) => Decision | Promise<Decision>,
  timeout?: number,
): Promise<MatrixError | undefined> {
  for (const { module, callbacks } of found) {
    const error = await decide(calls, module, name, () => call(callbacks), timeout);
    if (error !== undefined) return error;
  }
  return undefined;
}

/** Returns the first answer that is not `undefined`; a failure counts as `undefined`. @param isValid checks an answer */
export async function firstAnswer<T, A>(
  calls: ModuleCalls,
  name: string,
  found: readonly ModuleCallbacks<T>[],
  call: (callback: T) => A | undefined | Promise<A | undefined>,
  isValid: (answer: A) => boolean,
): Promise<A | undefined> {
  for (const { module, callbacks } of found) {
    try {
      const answer = await calls.run(module, name, () => call(callbacks));
      if (answer === undefined) continue;
      if (isValid(answer)) return answer;
      calls.failed(module, name, 'answer', new TypeError('The answer has the wrong type'));
    } catch (error) {
      if (!(error instanceof CallbackFailure)) throw error;
    }
  }
  return undefined;
}

/** Calls the callbacks of receivers without waiting for them; failures are logged. */
export function notify<T>(
  calls: ModuleCalls,
  name: string,
  found: readonly ModuleCallbacks<T>[],
  call: (callback: T) => void | Promise<void>,
): void {
  for (const { module, callbacks } of found) calls.run(module, name, () => call(callbacks)).catch(() => {});
}
