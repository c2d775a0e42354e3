import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JWK } from 'jose';
import { decodeJwt, exportJWK, generateKeyPair, SignJWT } from 'jose';
import Provider, { type ClientMetadata, type Configuration } from 'oidc-provider';
import { type LoopbackServer, serveOnLoopback } from '../../../test/support/network/loopback.ts';

/** A user of the provider: claims by name. */
export type Claims = Readonly<Record<string, unknown>> & { readonly sub: string };

/** The package oidc-provider, with users who need no password. */
export class OidcServer {
  readonly issuer: string;
  /** The user who logs in next; `undefined` when the user refuses. */
  user: Claims | undefined;
  /** When the provider claims to have authenticated the user, in seconds since the epoch; by default now. */
  signedInAt: number | undefined;
  /** Query strings of the authorization requests. */
  readonly authorizations: URLSearchParams[] = [];
  /** Authorization headers and bodies of the token requests. */
  readonly tokenRequests: { readonly authorization: string | undefined; readonly body: string }[] = [];
  /** Ids of the sessions in id tokens, in order. */
  readonly sessionIds: string[] = [];
  /**
   * Changes the responses of a path below the issuer: returns a JSON value, a string for a signed
   * token, or `undefined` for the real response.
   */
  replace: (path: string, real: Record<string, unknown>) => unknown = () => undefined;
  readonly #server: LoopbackServer;
  readonly #clients: readonly ClientMetadata[];
  readonly #settings: Configuration;
  #provider!: Provider;
  #key!: JWK;

  private constructor(server: LoopbackServer, clients: readonly ClientMetadata[], settings: Configuration) {
    this.#server = server;
    this.issuer = `http://127.0.0.1:${server.port}`;
    this.#clients = clients;
    this.#settings = settings;
  }

  static async start(
    clients: (issuer: string) => readonly ClientMetadata[],
    settings: Configuration = {},
  ): Promise<OidcServer> {
    let self: OidcServer | undefined;
    const server = await serveOnLoopback((request, response) => void self!.#handle(request, response));
    self = new OidcServer(server, clients(`http://127.0.0.1:${server.port}`), settings);
    await self.rotateKeys();
    return self;
  }

  /** Replaces the signing key by a new one. */
  async rotateKeys(): Promise<void> {
    const { privateKey } = await generateKeyPair('RS256', { extractable: true });
    this.#key = { ...(await exportJWK(privateKey)), use: 'sig', alg: 'RS256', kid: crypto.randomUUID() };
    this.#provider = new Provider(this.issuer, {
      clients: [...this.#clients],
      jwks: { keys: [this.#key] },
      cookies: { keys: ['test'] },
      // The scope openid gives every claim, so that tests need no other scope.
      claims: {
        openid: [
          'sub',
          'sid',
          'name',
          'preferred_username',
          'picture',
          'groups',
          'email',
          'email_verified',
          'locale',
        ],
      },
      scopes: ['openid', 'read_user'],
      conformIdTokenClaims: false,
      features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
      interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
      findAccount: (_context, id) => ({ accountId: id, claims: async () => ({ ...this.user, sub: id }) }),
      ...this.#settings,
    });
  }

  /** Returns a logout token for a session or a user. */
  async logoutToken(clientId: string, claims: Record<string, unknown>): Promise<string> {
    const { importJWK } = await import('jose');
    return new SignJWT({
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
      jti: 'a',
      ...claims,
    })
      .setProtectedHeader({ alg: 'RS256', kid: this.#key.kid!, typ: 'logout+jwt' })
      .setIssuer(this.issuer)
      .setAudience(clientId)
      .setIssuedAt()
      .sign(await importJWK(this.#key, 'RS256'));
  }

  /** Signs an id token with the current key. */
  async sign(claims: Record<string, unknown>): Promise<string> {
    const { importJWK } = await import('jose');
    return new SignJWT(claims)
      .setProtectedHeader({ alg: 'RS256', kid: this.#key.kid! })
      .sign(await importJWK(this.#key, 'RS256'));
  }

  stop(): Promise<void> {
    return this.#server.close();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.issuer);
    if (url.pathname.startsWith('/interaction/')) return this.#interact(request, response);
    if (url.pathname === '/auth') this.authorizations.push(url.searchParams);
    const isToken = url.pathname === '/token';
    if (isToken) request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    let body = '';
    const end = response.end.bind(response) as (chunk?: unknown) => ServerResponse;
    response.end = ((chunk?: unknown) => {
      if (isToken) this.tokenRequests.push({ authorization: request.headers.authorization, body });
      const isJson = String(response.getHeader('content-type')).includes('json');
      const original = isJson && chunk ? (JSON.parse(String(chunk)) as Record<string, unknown>) : {};
      const { id_token: idToken } = original;
      if (typeof idToken === 'string') this.sessionIds.push(String(decodeJwt(idToken)['sid']));
      const changed = this.replace(url.pathname, original);
      if (changed === undefined) return end(chunk);
      const isSigned = typeof changed === 'string';
      const text = Buffer.from(isSigned ? changed : JSON.stringify(changed));
      response.statusCode = 200;
      response.setHeader('content-type', isSigned ? 'application/jwt' : 'application/json');
      response.setHeader('content-length', text.length);
      return end(text);
    }) as typeof response.end;
    await this.#provider.callback()(request, response);
  }

  async #interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { params } = await this.#provider.interactionDetails(request, response);
    if (this.user === undefined) {
      const result = { error: 'access_denied', error_description: 'The user <b>refused</b>' };
      return this.#provider.interactionFinished(request, response, result);
    }
    const accountId = this.user.sub;
    const grant = new this.#provider.Grant({ accountId, clientId: String(params['client_id']) });
    grant.addOIDCScope('openid email profile read_user');
    const ts = this.signedInAt;
    const login = { accountId, remember: false, ...(ts !== undefined && { ts }) };
    const result = { login, consent: { grantId: await grant.save() } };
    return this.#provider.interactionFinished(request, response, result);
  }
}
