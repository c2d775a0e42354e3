import type { MayShowUser } from '../../directory/index.ts';
import { unlessNone } from '../accounts/account-checks.ts';
import { firstDenial } from '../calls/call-all.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';
import type { RegisteredCallbacks } from '../registered-callbacks.ts';

/** Returns the check whether searches of the user directory may show a user; `undefined` where no module has one. */
export function moduleFoundUsers(
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
): MayShowUser | undefined {
  const found = callbacks.with('spamChecker', 'mayShowUser');
  return unlessNone(found, async ({ userId, displayName, avatarUrl }, searcher) => {
    const user = { userId, displayName, avatarUrl };
    return (await firstDenial(calls, 'mayShowUser', found, (check) => check(user, searcher))) === undefined;
  });
}
