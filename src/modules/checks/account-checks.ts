import type { AccountChecks } from '../../accounts/index.ts';
import { decide } from '../calls/decide.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';
import type { RegisteredCallbacks } from '../registered-callbacks.ts';

/** Returns the checks of logins and registrations; a member is absent where no module has such a check. */
export function moduleAccountChecks(callbacks: RegisteredCallbacks, calls: ModuleCalls): AccountChecks {
  const logins = callbacks.checkersWith('checkLogin');
  const registrations = callbacks.checkersWith('checkRegistration');
  return {
    login:
      logins.length === 0
        ? undefined
        : async (login) => {
            for (const { module, callbacks: ask } of logins) {
              const error = await decide(calls, module, 'checkLogin', () => ask(login));
              if (error !== undefined) throw error;
            }
          },
    registration:
      registrations.length === 0
        ? undefined
        : async (registration) => {
            for (const { module, callbacks: ask } of registrations) {
              const error = await decide(calls, module, 'checkRegistration', () => ask(registration));
              if (error !== undefined) throw error;
            }
          },
  };
}
