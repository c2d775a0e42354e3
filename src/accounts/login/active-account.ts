import { forbidden } from '../../protocol/index.ts';
import type { AccountReader } from '../account-reader.ts';
import { deactivatedAccount, lockedAccount } from '../sessions/token-errors.ts';
import type { User } from '../user-store.ts';

/**
 * Returns an account that may log in.
 * @throws MatrixError M_FORBIDDEN when the account does not exist, M_USER_DEACTIVATED, M_USER_LOCKED
 */
export async function activeAccount(accounts: AccountReader, userId: string): Promise<User> {
  const user = await accounts.getUser(userId);
  if (user === undefined) throw forbidden('The account does not exist');
  if (user.isDeactivated) throw deactivatedAccount();
  if (user.isLocked) throw lockedAccount();
  return user;
}
