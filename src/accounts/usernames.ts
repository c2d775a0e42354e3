import { MatrixError, newUserId, type UserId } from '../protocol/index.ts';
import type { AccountOptions } from './account-options.ts';

/** Somebody who keeps user names for themselves, as application services do. */
export interface UsernameReservations {
  /** Whether only an application service other than `appservice` may have this user id. */
  isReservedFrom(userId: string, appservice: string | undefined): boolean;
}

export type UsernameRules = Pick<AccountOptions, 'server_name' | 'allow_underscore_prefixed_registration'>;

const invalidUsername = (message: string) => new MatrixError(400, 'M_INVALID_USERNAME', message);

/**
 * The user id that a new account gets for the name that somebody asks for.
 * @param appservice id of the application service that asks: it may have names that people may not
 * @throws MatrixError M_INVALID_USERNAME
 */
export function userIdFor(username: string, rules: UsernameRules, appservice?: string): UserId {
  const localpart = username.toLowerCase();
  const userId = newUserId(localpart, rules.server_name);
  if (userId === undefined) {
    throw invalidUsername(
      'User names are made of the characters a-z, 0-9 and ._=-/+, and user ids of 255 bytes',
    );
  }
  if (appservice !== undefined) return userId;
  if (/^\d+$/.test(localpart)) throw invalidUsername('Numeric user names are reserved for guests');
  if (localpart.startsWith('_') && !rules.allow_underscore_prefixed_registration) {
    throw invalidUsername('User names must not start with _');
  }
  return userId;
}

/** What somebody typed to name an account: a whole user id, or its local part. */
export function userIdFromInput(typed: string, serverName: string): string {
  return typed.startsWith('@') ? typed : `@${typed}:${serverName}`;
}
