import type { UpdateBatch } from '../api/index.ts';
import { firstAnswer } from '../calls/call-all.ts';
import { CallbackFailure, type ModuleCalls } from '../calls/module-calls.ts';
import type { RegisteredCallbacks } from '../registered-callbacks.ts';

/** Returns the function that runs `beforeBatch` of all modules; `undefined` where no module has this callback. */
export function beforeUpdateBatch(
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
): ((batch: UpdateBatch) => Promise<() => void>) | undefined {
  const beforeBatch = callbacks.with('backgroundUpdates', 'beforeBatch');
  if (beforeBatch.length === 0) return undefined;
  return async (batch) => {
    const endings: (() => void)[] = [];
    for (const { module, callbacks: begin } of beforeBatch) {
      const afterBatch = await calls.run(module, 'beforeBatch', () => begin(batch)).catch(ignoreLogged);
      if (typeof afterBatch !== 'function') continue;
      endings.push(() => void calls.run(module, 'beforeBatch', afterBatch).catch(ignoreLogged));
    }
    return () => {
      for (const end of endings) end();
    };
  };
}

/** Maximum number of rows in a batch. */
const maxRows = 1_000;

/** Returns the function that calls `batchSize` of the modules; `undefined` where no module has this callback. */
export function updateBatchSize(
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
): ((batch: UpdateBatch) => Promise<number | undefined>) | undefined {
  const found = callbacks.with('backgroundUpdates', 'batchSize');
  if (found.length === 0) return undefined;
  const isBatchSize = (answer: number) => Number.isInteger(answer) && answer >= 1 && answer <= maxRows;
  return (batch) => firstAnswer(calls, 'batchSize', found, (choose) => choose(batch), isBatchSize);
}

/** Ignores the failure of a callback, which `ModuleCalls` has logged. @throws every other error */
function ignoreLogged(error: unknown): undefined {
  if (!(error instanceof CallbackFailure)) throw error;
}
