import { type Route, redirect, route } from '../kernel/http/index.ts';
import type { JsonObject } from '../protocol/index.ts';
import type { Endpoints } from './endpoints.ts';
import { authMetadata } from './metadata.ts';

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

/** Serves the issuer to clients of an earlier version of MSC2965. */
export function issuerRoute(issuer: () => Promise<string>): Route {
  return route(
    { method: 'GET', path: '/_proto/client/unstable/org.matrix.msc2965/auth_issuer', auth: 'none' },
    async () => ({ issuer: await issuer() }),
  );
}

/**
 * Serves the metadata to OAuth clients that know only the issuer: clients that are not Matrix clients, and clients of an
 * earlier version of MSC2965. Source: RFC 8414, sections 3 and 5.
 */
export function issuerMetadataRoute(endpoints: Endpoints, canRegister: boolean): Route {
  const path = ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'];
  return route({ method: 'GET', path, auth: 'none' }, (): JsonObject => authMetadata(endpoints, canRegister));
}
