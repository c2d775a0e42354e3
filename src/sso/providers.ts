import type { LoginType } from '../accounts/index.ts';
import type { Route } from '../kernel/http/index.ts';
import { startStep } from '../kernel/start-failure.ts';
import type { BrowserLogins } from './browser-logins/browser-logins.ts';
import type { IdentityProvider } from './browser-logins/identity-provider.ts';
import { CasProvider } from './cas/cas-provider.ts';
import { casRoutes } from './cas/cas-routes.ts';
import { SsoLoginType } from './client-logins/sso-login-type.ts';
import type { ProviderSessions } from './external-ids/provider-sessions.ts';
import { JwtLogin, jwtLoginTypes } from './jwt/jwt-login.ts';
import { BackchannelLogout } from './oidc/backchannel-logout.ts';
import { checkSigningKey } from './oidc/client-secret.ts';
import { OidcProvider } from './oidc/oidc-provider.ts';
import { oidcRoutes } from './oidc/oidc-routes.ts';
import { SamlProvider } from './saml/saml-provider.ts';
import { samlRoutes } from './saml/saml-routes.ts';
import { serviceProviderOf } from './saml/service-provider-config.ts';
import type { SsoDeps, SsoOptions } from './sso-deps.ts';

export interface ProviderDeps
  extends Pick<
    SsoDeps,
    'database' | 'clock' | 'log' | 'http' | 'guardedHttp' | 'pages' | 'mappers' | 'accounts'
  > {
  /** Public URL of this server, ending in a slash. */
  readonly baseUrl: string;
  readonly serverName: string;
  readonly providerSessions: ProviderSessions;
}

/** The configured providers, with their login types and routes. */
export interface OpenedProviders {
  readonly providers: readonly IdentityProvider[];
  /** Login types besides `m.login.sso`. */
  readonly loginTypes: readonly LoginType[];
  /**
   * Checks the keys that sign client secrets, and the templates that map users to accounts.
   * @throws StartFailure when one of them cannot be used
   */
  check(): Promise<void>;
  /** Returns the routes for the browsers and requests that providers send. */
  routes(logins: BrowserLogins): Route[];
}

/** Opens the providers of the configuration. */
export function openProviders(deps: ProviderDeps, options: SsoOptions): OpenedProviders {
  const oidc = options.oidc_providers.map((config) => new OidcProvider(deps, config));
  const logout = new BackchannelLogout({
    providers: oidc,
    sessions: deps.providerSessions,
    devices: () => deps.accounts().devices,
    log: deps.log,
  });
  const cas = options.cas_config.enabled ? [new CasProvider(deps, options.cas_config)] : [];
  const { jwt_config: jwt, saml2_config: samlOptions } = options;
  const serviceProvider = samlOptions?.enabled ? serviceProviderOf(samlOptions) : undefined;
  const saml =
    samlOptions !== null && serviceProvider !== undefined
      ? [new SamlProvider(deps, samlOptions, serviceProvider)]
      : [];
  return {
    providers: [...oidc, ...saml, ...cas],
    loginTypes: [
      // Older clients know only the type `m.login.cas`.
      ...(cas.length > 0 ? [new SsoLoginType(cas, () => false, 'm.login.cas')] : []),
      ...(jwt.enabled ? jwtLoginTypes.map((type) => new JwtLogin(deps, jwt, type)) : []),
    ],
    async check() {
      for (const [index, { config, mapping }] of oidc.entries()) {
        const option = `oidc_providers[${index}]`;
        await startStep(`${option}.client_secret_jwt_key`, async () => checkSigningKey(config));
        await startStep(`${option}.user_mapping_provider.config`, () => mapping.checkTemplates());
      }
    },
    routes: (logins) => [
      ...(oidc.length > 0 ? oidcRoutes(logins, logout) : []),
      ...(cas.length > 0 ? casRoutes(logins) : []),
      ...saml.flatMap((provider) => samlRoutes(provider, logins, deps.pages)),
    ],
  };
}
