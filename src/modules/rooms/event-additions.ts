import { isJsonObject, type JsonObject, type RoomEvent } from '../../protocol/index.ts';
import type { EventAdditions } from '../../rooms/index.ts';
import { CallbackFailure, type ModuleCalls } from '../calls/module-calls.ts';
import type { RegisteredCallbacks } from '../registered-callbacks.ts';
import { moduleEvent } from './room-state.ts';

/**
 * Returns the function that asks modules for the fields to add to the `unsigned` of events; `undefined` where no module
 * adds anything.
 */
export function moduleEventAdditions(
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
): EventAdditions | undefined {
  const additions = callbacks.with('eventAdditions', 'unsigned');
  if (additions.length === 0) return undefined;
  return async (events) => {
    const added: (JsonObject | undefined)[] = events.map(() => undefined);
    for (const { module, callbacks: find } of additions) {
      const answers = await answersFor(calls, module, events, find);
      for (const [index, answer] of answers.entries()) {
        if (isJsonObject(answer)) added[index] = { ...added[index], ...answer };
      }
    }
    return added;
  };
}

/**
 * Calls a module once for all events, which costs less than one call for each event. When the call fails, the module
 * adds nothing to these events.
 */
async function answersFor(
  calls: ModuleCalls,
  module: string,
  events: readonly RoomEvent[],
  find: (event: ReturnType<typeof moduleEvent>) => unknown,
): Promise<readonly unknown[]> {
  if (events.length === 0) return [];
  try {
    return await calls.run(module, 'unsigned', () => {
      const answers = events.map((event) => find(moduleEvent(event)));
      const isWaiting = answers.some((answer) => answer instanceof Promise);
      return isWaiting ? Promise.all(answers) : answers;
    });
  } catch (error) {
    if (!(error instanceof CallbackFailure)) throw error;
    return [];
  }
}
