import { invalidParam } from '../protocol/index.ts';
import type { AccountOptions } from './account-options.ts';
import { builtInUserTypes } from './options/registration.ts';

/** Checks the type of a user. @throws MatrixError M_INVALID_PARAM for a type that is neither built in nor configured */
export function checkUserType(userType: string, { user_types }: Pick<AccountOptions, 'user_types'>): void {
  if (![...builtInUserTypes, ...user_types.extra_user_types].includes(userType)) {
    throw invalidParam('Unknown user type');
  }
}
