import { Script } from 'node:vm';

/** Calls `pendingCall`. A script is needed because only scripts can be interrupted while they run. */
const script = new Script(`globalThis[Symbol.for('hearth.module')]()`, { filename: 'module-call' });
let pendingCall: (() => unknown) | undefined;

Object.defineProperty(globalThis, Symbol.for('hearth.module'), { value: () => pendingCall?.() });

/**
 * Calls a function and interrupts it when it does not return in time, even in an endless loop or in a regular expression
 * with catastrophic backtracking. Work that the function continues later, after an `await`, is not limited.
 * @param timeout milliseconds of real time
 * @throws Error with `code` ERR_SCRIPT_EXECUTION_TIMEOUT when the time is over; what the function throws
 */
export function callWithTimeLimit<T>(work: () => T, timeout: number): T {
  let result: { readonly value: T } | undefined;
  pendingCall = () => {
    result = { value: work() };
  };
  script.runInThisContext({ timeout, displayErrors: false });
  return (result as unknown as { readonly value: T }).value;
}

/** Whether `callWithTimeLimit` has thrown an error because the time was over. */
export const isTimeLimit = (error: unknown): boolean =>
  (error as { readonly code?: unknown } | undefined)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
