import type { Devices } from '../../devices/index.ts';
import { Reply } from '../../kernel/http/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { isJsonObject, type JsonObject } from '../../protocol/index.ts';
import type { ProviderSessions } from '../external-ids/provider-sessions.ts';
import type { OidcProvider } from './oidc-provider.ts';

export interface BackchannelLogoutDeps {
  readonly providers: readonly OidcProvider[];
  readonly sessions: ProviderSessions;
  readonly devices: () => Pick<Devices, 'remove'>;
  readonly log: Logger;
}

const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout';

/** Logs devices out when their provider requests it. Source: OpenID Connect Back-Channel Logout 1.0. */
export class BackchannelLogout {
  readonly #deps: BackchannelLogoutDeps;

  constructor(deps: BackchannelLogoutDeps) {
    this.#deps = deps;
  }

  /** Logs out the devices of the session or of the user that a logout token names. */
  async run(token: string): Promise<Reply> {
    try {
      const provider = await this.#providerOf(token);
      await this.#logOut(provider, await provider.verifyLogoutToken(token));
      return reply(200, {});
    } catch (err) {
      this.#deps.log.info({ err }, 'A logout request of an identity provider was refused');
      return reply(400, { error: 'invalid_request', error_description: 'The logout token is not valid' });
    }
  }

  /** Returns the provider that a token claims to be from. The token is not verified yet. */
  async #providerOf(token: string): Promise<OidcProvider> {
    const { decodeJwt } = await import('jose');
    const { iss, aud } = decodeJwt(token);
    const found = this.#deps.providers.find(
      ({ config }) =>
        config.backchannel_logout_enabled && config.issuer === iss && [aud].flat().includes(config.client_id),
    );
    if (found === undefined) throw new Error('no provider with this issuer and client id allows logouts');
    return found;
  }

  async #logOut(provider: OidcProvider, claims: JsonObject): Promise<void> {
    const { sid, sub, events, nonce } = claims;
    if (!isJsonObject(events) || !isJsonObject(events[logoutEvent]))
      throw new Error('the token is not a logout token');
    if (nonce !== undefined) throw new Error('a logout token must not have a nonce');
    if (typeof sid !== 'string' && typeof sub !== 'string')
      throw new Error('the logout token has neither sid nor sub');
    // A logout token may lack claims that the template of the subject needs: backchannel_logout_ignore_sub
    // skips the comparison.
    const subject =
      typeof sub === 'string' && !provider.config.backchannel_logout_ignore_sub
        ? await provider.mapping.subject(claims)
        : undefined;
    const { sessions, devices } = this.#deps;
    const target =
      typeof sid === 'string'
        ? { sessionId: sid, externalId: subject }
        : { sessionId: undefined, externalId: subject ?? (await provider.mapping.subject(claims)) };
    // The listeners end the sessions of browsers. They come first, so that no browser logs a device in again meanwhile.
    const logout = { provider: provider.id, ...target };
    await sessions.callLogoutListeners(logout);
    for (const { userId, deviceId } of await sessions.devicesOf(logout)) {
      await devices().remove(userId, [deviceId]);
    }
  }
}

const reply = (status: number, body: object) =>
  new Reply(status, JSON.stringify(body), {
    'content-type': 'application/json',
    'cache-control': 'no-store',
  });
