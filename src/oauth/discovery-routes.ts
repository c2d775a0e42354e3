import { type Route, redirect, route } from '../kernel/http/index.ts';

/**
 * Redirects clients that do not know the stage `m.oauth` to the account page. Source: client-server API,
 * "Fallback".
 * @param accountUrl returns the URL of the account page
 */
export function resetFallbackRoute(accountUrl: () => Promise<string>): Route {
  return route(
    {
      method: 'GET',
      path: [
        '/_proto/client/v3/auth/m.oauth/fallback/web',
        '/_proto/client/v3/auth/org.matrix.cross_signing_reset/fallback/web',
      ],
      auth: 'none',
      errors: 'page',
    },
    async () => redirect(`${await accountUrl()}?action=org.matrix.cross_signing_reset`),
  );
}

/** Returns the issuer to clients of an earlier version of MSC2965. */
export function issuerRoute(issuer: () => Promise<string>): Route {
  return route(
    { method: 'GET', path: '/_proto/client/unstable/org.matrix.msc2965/auth_issuer', auth: 'none' },
    async () => ({ issuer: await issuer() }),
  );
}
