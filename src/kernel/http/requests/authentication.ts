import { forbidden, MatrixError } from '../../../protocol/index.ts';
import type { AuthenticationContext, Authenticator, Requester } from '../requester.ts';
import type { Auth } from '../routing/route.ts';

/** Kinds of authentication that check the access token before the handler runs. */
export type ClientAuth = Exclude<Auth, 'none' | 'on-demand' | 'server'>;

/**
 * Returns the access token of a request: from the `Authorization` header or else the `access_token` query
 * parameter (client-server API, "Using access tokens").
 */
export function accessTokenOf(authorization: string | undefined, query: string | string[] | undefined) {
  if (authorization !== undefined) {
    const match = /^Bearer +(\S+) *$/i.exec(authorization);
    if (match) return match[1];
  }
  return typeof query === 'string' && query !== '' ? query : undefined;
}

/**
 * Authenticates the access token.
 * @returns undefined without a token where it is optional
 * @throws MatrixError M_MISSING_TOKEN, M_UNKNOWN_TOKEN and the other errors of the authenticator
 */
export function authenticate(
  authenticator: Authenticator,
  auth: ClientAuth,
  token: string | undefined,
  context: AuthenticationContext,
): Requester | undefined | Promise<Requester> {
  if (token === undefined) {
    if (auth === 'optional') return undefined;
    throw new MatrixError(401, 'M_MISSING_TOKEN', 'Missing access token');
  }
  return authenticator.authenticate(token, context);
}

/**
 * Checks that a user may call a route with this kind of authentication.
 * @throws MatrixError M_GUEST_ACCESS_FORBIDDEN, M_FORBIDDEN
 */
export function requireAccess(requester: Requester, auth: ClientAuth): void {
  if (auth === 'user' && requester.isGuest) {
    throw new MatrixError(403, 'M_GUEST_ACCESS_FORBIDDEN', 'Guests may not do this');
  }
  if (auth === 'admin' && !requester.isAdmin) throw forbidden('You are not a server administrator');
  if (auth === 'appservice' && requester.appservice === undefined) {
    throw forbidden('Only application services may do this');
  }
}
