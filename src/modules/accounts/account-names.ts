import type { AccountNames, PendingRegistration } from '../../accounts/index.ts';
import { unknown } from '../../protocol/index.ts';
import type { AccountRules } from '../api/index.ts';
import { firstAnswer } from '../calls/call-all.ts';
import { CallbackFailure, type ModuleCalls } from '../calls/module-calls.ts';
import type { ModuleCallbacks, RegisteredCallbacks } from '../registered-callbacks.ts';
import { unlessNone } from './account-checks.ts';

const isText = (value: unknown) => typeof value === 'string';

/** Returns the names that modules choose for new accounts; a member is absent where no module chooses any. */
export function moduleAccountNames(callbacks: RegisteredCallbacks, calls: ModuleCalls): AccountNames {
  const usernames = callbacks.with('accountRules', 'usernameFor');
  const displayNames = callbacks.with('accountRules', 'displayNameFor');
  return {
    username: unlessNone(usernames, (registration) => chosenUsername(calls, usernames, registration)),
    displayName: unlessNone(displayNames, (registration) =>
      firstAnswer(calls, 'displayNameFor', displayNames, (choose) => choose(registration), isText),
    ),
  };
}

/**
 * @throws MatrixError with status 500 when a module fails: otherwise the account would permanently have a name that the
 * module did not choose
 */
async function chosenUsername(
  calls: ModuleCalls,
  found: readonly ModuleCallbacks<NonNullable<AccountRules['usernameFor']>>[],
  registration: PendingRegistration,
): Promise<string | undefined> {
  for (const { module, callbacks: choose } of found) {
    try {
      const name: unknown = await calls.run(module, 'usernameFor', () => choose(registration));
      if (name === undefined) continue;
      if (typeof name === 'string') return name;
      throw calls.failed(module, 'usernameFor', 'answer', new TypeError('The user name is not a text'));
    } catch (error) {
      if (!(error instanceof CallbackFailure)) throw error;
      throw unknown('A module of this server failed to choose the user name. Try again later');
    }
  }
  return undefined;
}
