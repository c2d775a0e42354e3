import { MatrixError } from '../../protocol/index.ts';
import type { RefreshTokenRow } from './token-store.ts';

/** Returns the error for a token that is unknown or revoked: the client must log in again. */
export const unknownToken = (message: string) =>
  new MatrixError(401, 'M_UNKNOWN_TOKEN', message, { soft_logout: false });

/**
 * Returns the error for a token that has expired: the client may keep its keys. Source: client-server API,
 * "Soft logout".
 */
export const expiredToken = (message: string) =>
  new MatrixError(401, 'M_UNKNOWN_TOKEN', message, { soft_logout: true });

/** Returns the error for a deactivated account. */
export const deactivatedAccount = () =>
  new MatrixError(403, 'M_USER_DEACTIVATED', 'This account has been deactivated');

/** Returns the error for a locked account. Source: client-server API, "Account locking". */
export const lockedAccount = () =>
  new MatrixError(401, 'M_USER_LOCKED', 'This account has been locked', { soft_logout: true });

/**
 * Returns a refresh token that may be exchanged for new tokens, and refuses other tokens.
 * @throws MatrixError M_UNKNOWN_TOKEN, M_USER_LOCKED
 */
export function checkRefreshToken(token: RefreshTokenRow | undefined, now: number): RefreshTokenRow {
  if (token === undefined || token.is_deactivated === 1) throw unknownToken('Unknown refresh token');
  if (token.is_locked === 1) throw lockedAccount();
  if (token.expires_at !== null && token.expires_at <= now)
    throw expiredToken('The refresh token has expired');
  return token;
}
