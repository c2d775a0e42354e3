import { MatrixError, newUserId, type UserId } from '../protocol/index.ts';
import type { AccountOptions } from './account-options.ts';

/** User names that are reserved, for instance for application services. */
export interface UsernameReservations {
  /**
   * Whether the user id is reserved for an application service other than `appservice`.
   * @param appservice id of the application service that wants the user id; `undefined` when a user or program does
   */
  isReservedFrom(userId: string, appservice: string | undefined): boolean;
  /** Whether the user is the sender of an application service: the user as whom the service acts by default. */
  isSender?(userId: string): boolean;
  /** Whether an application service creates devices by itself and never logs in (MSC4190). */
  managesDevices?(appservice: string): boolean;
}

/** The error of a login of an application service that creates devices by itself (MSC4190). */
export const appserviceLoginUnsupported = (message: string): MatrixError =>
  new MatrixError(400, 'M_APPSERVICE_LOGIN_UNSUPPORTED', message);

/** The options that decide which user names are allowed. */
export type UsernameRules = Pick<AccountOptions, 'server_name' | 'allow_underscore_prefixed_registration'>;

const invalidUsername = (message: string) => new MatrixError(400, 'M_INVALID_USERNAME', message);

/**
 * Returns the user id for a requested user name.
 * @param appservice id of the application service that requests the name; services may use names that are forbidden for
 * users
 * @throws MatrixError M_INVALID_USERNAME
 */
export function userIdFor(username: string, rules: UsernameRules, appservice?: string): UserId {
  const localpart = username.toLowerCase();
  const userId = newUserId(localpart, rules.server_name);
  if (userId === undefined) {
    throw invalidUsername(
      'User names may contain only the characters a-z, 0-9 and ._=-/+, and user ids may have at most 255 bytes',
    );
  }
  if (appservice !== undefined) return userId;
  if (/^\d+$/.test(localpart)) throw invalidUsername('Numeric user names are reserved for guests');
  if (localpart.startsWith('_') && !rules.allow_underscore_prefixed_registration) {
    throw invalidUsername('User names must not start with _');
  }
  return userId;
}

/** Returns the user id for the text that a user entered: a user id or its local part. */
export function userIdFromInput(typed: string, serverName: string): string {
  return typed.startsWith('@') ? typed : `@${typed}:${serverName}`;
}
