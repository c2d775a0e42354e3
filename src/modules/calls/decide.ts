import { isJsonObject, MatrixError, unknown } from '../../protocol/index.ts';
import type { Decision } from '../api/index.ts';
import { CallbackFailure, type ModuleCalls } from './module-calls.ts';

/**
 * Calls a check of a module.
 * @returns the error for the client: the error of the module, or status 500 when the check fails; undefined allows the
 * request
 */
export async function decide(
  calls: ModuleCalls,
  module: string,
  callback: string,
  check: () => Decision | Promise<Decision>,
  timeout?: number,
): Promise<MatrixError | undefined> {
  try {
    const decision = await calls.run(module, callback, check, timeout);
    return decision === 'allow' ? undefined : errorOf(calls, module, callback, decision);
  } catch (error) {
    if (!(error instanceof CallbackFailure)) throw error;
    return unknown('A check of this server failed. Try again later');
  }
}

function errorOf(calls: ModuleCalls, module: string, callback: string, decision: unknown): MatrixError {
  const denial = denialOf(decision);
  if (denial !== undefined) return denial;
  throw calls.failed(module, callback, 'answer', new TypeError("The answer is neither 'allow' nor a denial"));
}

/**
 * Returns the error for the client that an answer of a module describes; `undefined` for an answer that is not a valid
 * denial.
 */
export function denialOf(answer: unknown): MatrixError | undefined {
  const { errcode, error, status = 403, extra = {} } = Object(answer) as Record<string, unknown>;
  const isDenial =
    typeof errcode === 'string' &&
    typeof error === 'string' &&
    typeof status === 'number' &&
    Number.isInteger(status) &&
    status >= 400 &&
    status <= 499 &&
    isJsonObject(extra);
  return isDenial ? new MatrixError(status, errcode, error, extra) : undefined;
}
