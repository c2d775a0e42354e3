import type { AccountChecks, RegistrationVerdict } from '../../accounts/index.ts';
import type { MatrixError } from '../../protocol/index.ts';
import type { Decision } from '../api/index.ts';
import { firstDenial } from '../calls/call-all.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';
import type { ModuleCallbacks, RegisteredCallbacks } from '../registered-callbacks.ts';

/** Returns the checks of accounts; a member is absent where no module has such a check. */
export function moduleAccountChecks(callbacks: RegisteredCallbacks, calls: ModuleCalls): AccountChecks {
  const logins = callbacks.with('spamChecker', 'checkLogin');
  const registrations = callbacks.with('spamChecker', 'checkRegistration');
  const deactivations = callbacks.with('accountRules', 'mayDeactivate');
  return {
    login: unlessNone(logins, async (login) =>
      throwDenial(await firstDenial(calls, 'checkLogin', logins, (check) => check(login))),
    ),
    registration: unlessNone(registrations, async (registration) => {
      let verdict: RegistrationVerdict;
      const call = async (check: (typeof registrations)[number]['callbacks']): Promise<Decision> => {
        const answer = await check(registration);
        if (answer !== 'shadow-ban') return answer;
        verdict = answer;
        return 'allow';
      };
      throwDenial(await firstDenial(calls, 'checkRegistration', registrations, call));
      return verdict;
    }),
    deactivation: unlessNone(deactivations, async (userId, byAdmin) =>
      throwDenial(
        await firstDenial(calls, 'mayDeactivate', deactivations, (check) => check(userId, byAdmin)),
      ),
    ),
  };
}

/** Returns `check`; `undefined` where no module has such a check, so that callers have nothing to await. */
export const unlessNone = <C>(found: readonly ModuleCallbacks<unknown>[], check: C): C | undefined =>
  found.length === 0 ? undefined : check;

/** @throws MatrixError the denial, if there is one */
export function throwDenial(denial: MatrixError | undefined): void {
  if (denial !== undefined) throw denial;
}
