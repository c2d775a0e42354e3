import type { AccountsSlice } from '../../accounts/index.ts';
import { redirect } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import type { Profiles } from '../../profiles/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { LoginContinuation } from '../browser-logins/continuation.ts';
import { isTrustedClient, readRedirectUrl, shownUrl, sourceOf, withLoginToken } from './redirect-url.ts';

export interface ClientContinuationDeps {
  readonly accounts: () => Pick<AccountsSlice, 'loginTokens'>;
  readonly profiles: Pick<Profiles, 'read'>;
  readonly pages: Pages;
  readonly serverName: string;
  /** URL prefixes of trusted clients: the option `client_whitelist`, and the login page of this server. */
  readonly trustedClients: readonly string[];
}

/** Kind of the logins that return to a client with a login token. */
export const clientLogin = 'client';

/**
 * Lifetime of a login token in milliseconds. It includes the time in which the user confirms the redirect to the
 * client.
 */
const tokenLifetime = 2 * 60_000;

/**
 * Ends a login by sending the browser back to the client with a login token, after a confirmation unless the client is
 * trusted. Source: client-server API, "SSO client login/authentication".
 */
export function clientContinuation(deps: ClientContinuationDeps): LoginContinuation {
  return {
    kind: clientLogin,
    formTargets: (data) => sourceOf(readRedirectUrl(redirectUrlIn(data))),
    async finish({ userId, data, isNewAccount, providerSession, extraFields }) {
      const redirectUrl = redirectUrlIn(data);
      const url = readRedirectUrl(redirectUrl);
      const { provider, externalId, sessionId = null } = providerSession;
      const details = { provider, externalId, sessionId, members: extraFields };
      const token = await deps.accounts().loginTokens.issue(userId, tokenLifetime, details);
      const target = withLoginToken(url, token);
      if (isTrustedClient(redirectUrl, deps.trustedClients)) {
        const headers = { 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' };
        return redirect(target, 303, headers);
      }
      const profile = await deps.profiles.read(userId);
      return deps.pages.page('sso_redirect_confirm.html', {
        server_name: deps.serverName,
        redirect_url: target,
        display_url: shownUrl(url),
        new_user: isNewAccount,
        user_id: userId,
        user_profile: { display_name: profile['displayname'] ?? '', avatar_url: profile['avatar_url'] ?? '' },
      });
    },
  };
}

const redirectUrlIn = ({ redirectUrl }: JsonObject) => String(redirectUrl);
