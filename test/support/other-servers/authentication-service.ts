import { createServer as createServerOfHttp1, type Server as Http1Server } from 'node:http';
import { createServer as createServerOfHttp2, type Http2Server, type Http2ServerRequest } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** An introspection request, as the service receives it. */
export interface Introspection {
  readonly token: string;
  readonly authorization: string | undefined;
  readonly supportsDeviceId: string | undefined;
  readonly httpVersion: string;
}

/** The secret that the service and the homeserver share. */
export const serviceSecret = 'the-shared-secret';

/**
 * A scripted authentication service, whose introspection responses and status a test sets. It refuses introspections as
 * the Matrix Authentication Service does: those without the secret with 401, and those that are no form with 415.
 */
export class ScriptedAuthenticationService {
  /** Introspection responses by token; other tokens are not active. */
  readonly tokens = new Map<string, Record<string, unknown>>();
  /** Received introspection requests, in order. */
  readonly introspections: Introspection[] = [];
  /** Number of requests for the metadata. */
  metadataReads = 0;
  /** Status of the responses with metadata, and of the introspection responses that refuse nothing. */
  status = 200;
  readonly #server: Http1Server | Http2Server;

  private constructor(server: Http1Server | Http2Server) {
    this.#server = server;
  }

  /** @param protocol `http2` accepts HTTP/2 only, without TLS */
  static async start(protocol: 'http1' | 'http2' = 'http1'): Promise<ScriptedAuthenticationService> {
    const server = protocol === 'http1' ? createServerOfHttp1() : createServerOfHttp2();
    const service = new ScriptedAuthenticationService(server);
    (server as Http2Server).on('request', (request, response) => {
      void service.#answer(request).then(({ status, body }) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(body));
      });
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', () => resolve()));
    return service;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  async stop(): Promise<void> {
    if ('closeAllConnections' in this.#server) this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #answer(request: Http2ServerRequest): Promise<{ status: number; body: object }> {
    const body = await text(request);
    if (request.url === '/.well-known/openid-configuration') {
      this.metadataReads += 1;
      return { status: this.status, body: this.#metadata() };
    }
    if (request.url !== '/oauth2/introspect' || request.method !== 'POST') return { status: 404, body: {} };
    const { authorization, 'content-type': type, 'x-mas-supports-device-id': supports } = request.headers;
    if (type !== 'application/x-www-form-urlencoded') return { status: 415, body: {} };
    if (authorization !== `Bearer ${serviceSecret}`) return { status: 401, body: {} };
    const fields = new URLSearchParams(body);
    const token = fields.get('token');
    if (token === null || fields.get('token_type_hint') !== 'access_token') return { status: 400, body: {} };
    const supportsDeviceId = supports === undefined ? undefined : String(supports);
    this.introspections.push({ token, authorization, supportsDeviceId, httpVersion: request.httpVersion });
    return { status: this.status, body: this.tokens.get(token) ?? { active: false } };
  }

  #metadata(): object {
    return {
      issuer: 'https://auth.example/',
      authorization_endpoint: 'https://auth.example/authorize',
      token_endpoint: 'https://auth.example/oauth2/token',
      revocation_endpoint: 'https://auth.example/oauth2/revoke',
      registration_endpoint: 'https://auth.example/oauth2/registration',
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      response_modes_supported: ['query', 'fragment'],
      code_challenge_methods_supported: ['S256'],
      account_management_uri: 'https://auth.example/account',
    };
  }
}
