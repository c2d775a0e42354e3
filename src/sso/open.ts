import { fileURLToPath } from 'node:url';
import type { AccountExtensions, TokenIssuer } from '../accounts/index.ts';
import type { Route } from '../kernel/http/index.ts';
import { BrowserLogins } from './browser-logins/browser-logins.ts';
import { LoginSessions } from './browser-logins/login-sessions.ts';
import { clientContinuation } from './client-logins/client-continuation.ts';
import { redirectRoutes } from './client-logins/redirect-routes.ts';
import { SsoLoginType } from './client-logins/sso-login-type.ts';
import { ExternalIds } from './external-ids/external-ids.ts';
import { ProviderSessions } from './external-ids/provider-sessions.ts';
import { newUserRoutes } from './new-accounts/new-user-routes.ts';
import { newUserSteps } from './new-accounts/new-user-steps.ts';
import { ProviderAccounts } from './new-accounts/provider-accounts.ts';
import { ProviderProfiles } from './new-accounts/provider-profiles.ts';
import { type OpenedProviders, openProviders } from './providers.ts';
import { ssoFlows, ssoStage } from './reauthentication/sso-stage.ts';
import { confirmationRoutes, stageContinuation } from './reauthentication/stage-continuation.ts';
import type { SsoDeps, SsoOptions } from './sso-deps.ts';

/** Folder of the templates of the pages of single sign-on. */
export const ssoTemplates = fileURLToPath(new URL('./templates', import.meta.url));

export type SsoSlice = ReturnType<typeof openSso>;

/** Rate limit of the logins that one client address begins. */
export const beginRate = { per_second: 0.5, burst_count: 30 };

/**
 * Opens single sign-on: the configured providers, their routes, and the login types and stages that accounts
 * offer.
 */
export function openSso(deps: SsoDeps, options: SsoOptions) {
  const { accounts, pages, profiles } = deps;
  const serverName = options.server_name;
  const baseUrl = (options.public_baseurl ?? `https://${serverName}`).replace(/\/*$/, '/');
  const externalIds = new ExternalIds(deps.database);
  const providerSessions = new ProviderSessions(deps.database);
  const providerAccounts = new ProviderAccounts({
    ...deps,
    externalIds,
    serverName,
    limiter: deps.limits.registration,
    profiles: new ProviderProfiles({ ...deps, maxPicture: options.max_avatar_size }),
  });
  const opened = openProviders({ ...deps, baseUrl, serverName, providerSessions }, options);
  const { providers } = opened;
  const logins = new BrowserLogins({
    ...deps,
    providers,
    sessions: new LoginSessions(deps),
    accounts: providerAccounts,
    limiter: deps.limits.begin,
    newUserPages: newUserSteps(options.terms ?? undefined),
    updatesProfiles: options.sso.update_profile_information,
  });
  const trustedClients = trustedClientsOf(options, baseUrl);
  logins.addContinuation(clientContinuation({ accounts, profiles, pages, serverName, trustedClients }));
  logins.addContinuation(stageContinuation({ ...deps, accounts }));
  const terms = options.terms === null ? undefined : termsOf(options.terms, baseUrl);
  const oauthAware = { isPreferred: false };
  const extensions = extensionsOf(opened, { externalIds, providerSessions, oauthAware });
  const routes: Route[] =
    providers.length === 0
      ? []
      : [
          ...redirectRoutes({ logins, pages, serverName, publicUrl: options.public_baseurl }),
          ...newUserRoutes({ logins, accounts: providerAccounts, pages, serverName, terms }),
          ...confirmationRoutes(logins, accounts),
          ...opened.routes(logins),
        ];
  return {
    logins,
    externalIds,
    providerSessions,
    /**
     * Whether clients that can use OAuth 2.0 should prefer it to `m.login.sso`; the authorization server sets
     * it.
     */
    oauthAware,
    extensions,
    routes,
    check: () => opened.check(),
  };
}

const termsOf = (version: string, baseUrl: string) => ({
  version,
  url: `${baseUrl}_matrix/consent?v=${encodeURIComponent(version)}`,
});

/** Returns the URL prefixes of trusted clients. Browsers are redirected to these clients without a confirmation. */
const trustedClientsOf = ({ sso }: SsoOptions, baseUrl: string): string[] => [
  ...(sso.client_whitelist ?? []),
  ...['_matrix', '_proto'].map((space) => `${baseUrl}${space}/static/client/login`),
];

interface ExtensionsDeps {
  readonly externalIds: ExternalIds;
  readonly providerSessions: ProviderSessions;
  readonly oauthAware: { readonly isPreferred: boolean };
}

/** Returns the login types and stages that single sign-on adds to accounts. */
function extensionsOf(
  { providers, loginTypes }: OpenedProviders,
  { externalIds, providerSessions, oauthAware }: ExtensionsDeps,
): Pick<
  AccountExtensions,
  'stages' | 'confirmation' | 'loginTypes' | 'loginTokenIssuer' | 'beforeReopening'
> {
  const stageDeps = { providers: () => providers, externalIds };
  return {
    stages: providers.length > 0 ? [ssoStage(stageDeps)] : [],
    confirmation: (userId) => ssoFlows(stageDeps, userId),
    loginTypes: [new SsoLoginType(providers, () => oauthAware.isPreferred), ...loginTypes],
    loginTokenIssuer: tokenIssuer(providers.length > 0, providerSessions),
    beforeReopening: [(writer, device) => providerSessions.forgetIn(writer, device)],
  };
}

/** Stores, for each session that a login token opens, the provider that has authenticated the user. */
const tokenIssuer = (issuesTokens: boolean, sessions: ProviderSessions): TokenIssuer => ({
  issuesTokens,
  async opened(writer, { userId, deviceId, details }) {
    const { provider, externalId, sessionId } = details;
    if (typeof provider !== 'string' || typeof externalId !== 'string') return;
    const session = {
      provider,
      externalId,
      sessionId: typeof sessionId === 'string' ? sessionId : undefined,
    };
    await sessions.recordIn(writer, { userId, deviceId }, session);
  },
});
