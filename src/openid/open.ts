import { OpenIdTokens, type OpenIdTokensDeps } from './openid-tokens.ts';
import { openIdRoutes } from './routes.ts';

/** Opens OpenID tokens. Must be called before jobs are started. */
export function openOpenId(deps: OpenIdTokensDeps & { readonly serverName: string }) {
  const openIdTokens = new OpenIdTokens(deps);
  return { openIdTokens, routes: openIdRoutes(openIdTokens, deps.serverName) };
}
