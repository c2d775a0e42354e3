import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { TestServer } from '../../../test/support/servers/server.ts';

/** A response of an endpoint or a page. */
export interface WebAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Empty when the response is not JSON. */
  readonly json: Record<string, unknown>;
}

/** Removes the public origin from a URL of the server under test, so that requests use the test server's address instead. */
const pathOf = (url: string) => url.replace(/^https:\/\/(test|sso\.example)(?=\/)/, '');

/** A browser without scripts: it stores cookies and fills in forms. Only `open` follows redirects. */
export class TestBrowser {
  readonly #server: TestServer;
  readonly #cookies = new Map<string, string>();

  constructor(server: TestServer) {
    this.#server = server;
  }

  get cookies(): ReadonlyMap<string, string> {
    return this.#cookies;
  }

  /** Requests a page; redirects are not followed. @param url public URL, or path */
  async get(url: string, headers: Record<string, string> = {}): Promise<WebAnswer> {
    return this.#request(url, { headers });
  }

  async post(url: string, fields: Record<string, string>, headers: Record<string, string> = {}) {
    return this.#request(url, { method: 'POST', body: new URLSearchParams(fields), headers });
  }

  /** Requests a page, and follows the redirects on this server. */
  async open(url: string): Promise<WebAnswer> {
    let answer = await this.get(url);
    for (let redirects = 0; answer.status === 303 && redirects < 5; redirects++)
      answer = await this.get(locationOf(answer));
    return answer;
  }

  /** Sends the sign-in form of a page. @returns the response, which redirects when the user is signed in */
  async signIn(page: WebAnswer, username: string, password = 'correct horse'): Promise<WebAnswer> {
    const fields = { ...fieldsOf(page.text), username, password };
    return this.post('/_synapse/client/oauth2/sign_in', fields);
  }

  async #request(url: string, init: RequestInit & { headers: Record<string, string> }): Promise<WebAnswer> {
    const path = pathOf(url);
    assert.ok(path.startsWith('/'), `${url} is not on this server`);
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(this.#server.baseUrl + path, {
      ...init,
      headers: { ...(cookie !== '' && { cookie }), ...init.headers },
      redirect: 'manual',
    });
    for (const header of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(header)!;
      if (value === '') this.#cookies.delete(name!);
      else this.#cookies.set(name!, value!);
    }
    return answerOf(response);
  }
}

async function answerOf(response: Response): Promise<WebAnswer> {
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json');
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: isJson ? (JSON.parse(text) as Record<string, unknown>) : {},
  };
}

/** Returns the target of a redirect. A relative link to the sign-in page is made absolute. */
export function locationOf({ headers, status, text }: WebAnswer): string {
  const location = headers.get('location');
  assert.ok(location !== null, `no redirect, but ${status} ${text}`);
  return location.startsWith('sign_in') ? `/_synapse/client/oauth2/${location}` : location;
}

/** Returns the hidden fields of the first form with the method POST, with their values. */
export function fieldsOf(html: string): Record<string, string> {
  const form = /<form method="post".*?<\/form>/s.exec(html)?.[0] ?? '';
  const inputs = form.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g);
  return Object.fromEntries([...inputs].map(([, name, value]) => [name, unescaped(value!)]));
}

const unescaped = (text: string) =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

/** The metadata that Element X on Android registers. */
export const elementX = {
  client_name: 'Element X',
  client_uri: 'https://element.io/',
  redirect_uris: ['io.element.android:/'],
  grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
  application_type: 'native',
  tos_uri: 'https://element.io/acceptable-use-policy-terms',
  policy_uri: 'https://element.io/privacy',
};

export const verifier = 'a-code-verifier-of-more-than-forty-three-characters';
export const challengeOf = (text: string) => createHash('sha256').update(text).digest('base64url');

/** A client that logs in by OAuth 2.0 with the requests of Element X. */
export class OAuthClient {
  readonly #server: TestServer;
  readonly metadata: Record<string, string>;
  readonly clientId: string;
  readonly redirectUri: string;

  private constructor(
    server: TestServer,
    metadata: Record<string, string>,
    clientId: string,
    redirectUri: string,
  ) {
    this.#server = server;
    this.metadata = metadata;
    this.clientId = clientId;
    this.redirectUri = redirectUri;
  }

  /** Discovers the authorization server and registers. */
  static async register(server: TestServer, client: typeof elementX = elementX): Promise<OAuthClient> {
    const found = await server.api('GET', '/_matrix/client/v1/auth_metadata');
    assert.equal(found.status, 200, found.raw);
    const metadata = found.body as Record<string, string>;
    const registered = await postJson(server, metadata['registration_endpoint']!, client);
    assert.equal(registered.status, 201, registered.text);
    return new OAuthClient(server, metadata, String(registered.json['client_id']), client.redirect_uris[0]!);
  }

  /** Returns the URL that the client opens in a browser. */
  authorizationUrl(deviceId: string, more: Record<string, string> = {}): string {
    const url = new URL(this.metadata['authorization_endpoint']!);
    const parameters = {
      response_type: 'code',
      client_id: this.clientId,
      redirect_uri: this.redirectUri,
      scope: `openid urn:matrix:client:api:* urn:matrix:client:device:${deviceId}`,
      state: 'the state',
      code_challenge: challengeOf(verifier),
      code_challenge_method: 'S256',
      ...more,
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.href;
  }

  /** Lets a user of a browser sign in and allow the login. @returns the parameters of the answer */
  async authorize(
    browser: TestBrowser,
    { user = 'alice', deviceId = 'PHONE', more = {} }: AuthorizeOptions = {},
  ): Promise<URLSearchParams> {
    const url = this.authorizationUrl(deviceId, more);
    let page = await browser.open(url);
    if (page.text.includes('name="password"'))
      page = await browser.open(locationOf(await browser.signIn(page, user)));
    assert.equal(page.status, 200, page.text);
    const answer = await browser.post('/_synapse/client/oauth2/authorize', {
      ...fieldsOf(page.text),
      decision: 'allow',
    });
    assert.equal(answer.status, 303, answer.text);
    return answerIn(locationOf(answer), this.redirectUri);
  }

  /** Sends a request to the token endpoint. */
  token(fields: Record<string, string>): Promise<WebAnswer> {
    const all = { client_id: this.clientId, ...fields };
    return new TestBrowser(this.#server).post(this.metadata['token_endpoint']!, all);
  }

  exchange(code: string, more: Record<string, string> = {}): Promise<WebAnswer> {
    const fields = {
      grant_type: 'authorization_code',
      code,
      redirect_uri: this.redirectUri,
      code_verifier: verifier,
    };
    return this.token({ ...fields, ...more });
  }

  refresh(refreshToken: unknown): Promise<WebAnswer> {
    return this.token({ grant_type: 'refresh_token', refresh_token: String(refreshToken) });
  }

  revoke(token: unknown): Promise<WebAnswer> {
    return new TestBrowser(this.#server).post(this.metadata['revocation_endpoint']!, {
      token: String(token),
      token_type_hint: 'access_token',
      client_id: this.clientId,
    });
  }

  /** Begins a login of a device without a browser. */
  async beginOnDevice(deviceId: string): Promise<WebAnswer> {
    const scope = `urn:matrix:client:api:* urn:matrix:client:device:${deviceId}`;
    const fields = { client_id: this.clientId, scope };
    return new TestBrowser(this.#server).post(this.metadata['device_authorization_endpoint']!, fields);
  }

  /** Logs in. @returns the response with the tokens */
  async logIn(browser: TestBrowser, options: AuthorizeOptions = {}): Promise<Record<string, string>> {
    const answer = await this.authorize(browser, options);
    const { status, json, text } = await this.exchange(answer.get('code')!);
    assert.equal(status, 200, text);
    return json as Record<string, string>;
  }

  /** Returns the user and the device of a token, or the status and the error code. */
  async whoami(accessToken: unknown): Promise<unknown[]> {
    const { status, body } = await this.#server.api('GET', '/_matrix/client/v3/account/whoami', {
      token: String(accessToken),
    });
    return status === 200 ? [body['user_id'], body['device_id']] : [status, body['errcode']];
  }
}

export interface AuthorizeOptions {
  readonly user?: string;
  readonly deviceId?: string;
  readonly more?: Record<string, string>;
}

/** Returns the parameters that a redirect sends to a client. */
export function answerIn(location: string, redirectUri: string): URLSearchParams {
  assert.ok(location.startsWith(redirectUri), location);
  return new URLSearchParams(location.slice(redirectUri.length + 1));
}

/** Sends JSON to an endpoint. @param url public URL, or path */
export async function postJson(server: TestServer, url: string, body: unknown): Promise<WebAnswer> {
  const response = await fetch(server.baseUrl + pathOf(url), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return answerOf(response);
}
