import type { LoginType } from '../../accounts/index.ts';
import { type JsonObject, MatrixError } from '../../protocol/index.ts';
import type { ProviderDescription } from '../browser-logins/identity-provider.ts';

/**
 * `m.login.sso` in `GET /login`, with the providers, or `m.login.cas` without them. Clients log in with `m.login.token`
 * afterwards. Source: client-server API, "Client login via SSO".
 */
export class SsoLoginType implements LoginType {
  readonly type: string;
  readonly #providers: readonly ProviderDescription[];
  /** Whether clients that can use OAuth 2.0 should prefer it: the entry then says so. */
  readonly #oauthAware: () => boolean;

  constructor(providers: readonly ProviderDescription[], oauthAware: () => boolean, type = 'm.login.sso') {
    this.type = type;
    this.#providers = providers;
    this.#oauthAware = oauthAware;
  }

  get isOffered(): boolean {
    return this.#providers.length > 0;
  }

  flow(): JsonObject {
    if (this.type !== 'm.login.sso') return {};
    return {
      identity_providers: this.#providers.map(({ id, name, icon, brand }) => ({
        id,
        name,
        ...(icon !== undefined && { icon }),
        ...(brand !== undefined && { brand }),
      })),
      ...(this.#oauthAware() && {
        oauth_aware_preferred: true,
        'org.matrix.msc3824.delegated_oidc_compatibility': true,
      }),
    };
  }

  login(): Promise<never> {
    throw new MatrixError(400, 'M_UNKNOWN', 'Log in through a browser, and then with m.login.token');
  }
}
