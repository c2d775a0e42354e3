import assert from 'node:assert/strict';
import type { OpenDatabase } from '../../../test/support/databases/databases.ts';
import { sectionDefaults } from '../../../test/support/inputs/section-defaults.ts';
import { forwardedListener } from '../../../test/support/servers/forwarded-listener.ts';
import type { TestServer, TestServerOptions } from '../../../test/support/servers/server.ts';
import { startTestServer } from '../../../test/support/servers/server.ts';
import { ssoSection } from '../config.ts';
import { type BrowserPage, TestBrowser } from './test-browser.ts';

/** The public URL of the servers of these tests; a test browser sends requests for it to the server. */
export const publicUrl = 'https://sso.example';

/** The URL of the client of these tests. Browsers return to it after a login. */
export const clientUrl = 'https://app.client.example/?room=1#/home';

/** A homeserver behind a reverse proxy with TLS, whose users log in through browsers. */
export class SsoServer {
  readonly server: TestServer;

  constructor(server: TestServer) {
    this.server = server;
  }

  static async start(
    database: OpenDatabase['kind'],
    config: NonNullable<TestServerOptions['config']>,
    options: Partial<TestServerOptions> = {},
  ): Promise<SsoServer> {
    const server = await startTestServer({
      database,
      ...options,
      config: {
        ...config,
        server: { server_name: 'test', public_baseurl: `${publicUrl}/`, ...config.server },
        http: forwardedListener,
      } as NonNullable<TestServerOptions['config']>,
    });
    return new SsoServer(server);
  }

  browser(): TestBrowser {
    return new TestBrowser(new Map([[publicUrl, this.server.baseUrl]]));
  }

  /** Returns the URL where a client begins a login. */
  redirectUrl(provider?: string, redirectUrl = clientUrl, more: Record<string, string> = {}): string {
    const query = new URLSearchParams({ redirectUrl, ...more });
    const path = provider === undefined ? '' : `/${provider}`;
    return `${publicUrl}/_matrix/client/v3/login/sso/redirect${path}?${query}`;
  }

  /** Logs in through a provider. @returns the page at the end */
  login(provider: string, browser = this.browser()): Promise<BrowserPage> {
    return browser.get(this.redirectUrl(provider));
  }

  /** Exchanges the login token in a page for a session. */
  async session(page: BrowserPage, more: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const token = tokenIn(page);
    const body = { type: 'm.login.token', token, ...more };
    const answer = await this.server.api('POST', '/_matrix/client/v3/login', { body });
    assert.equal(answer.status, 200, answer.raw);
    return answer.body;
  }

  async displayName(userId: string): Promise<unknown> {
    const path = `/_matrix/client/v3/profile/${encodeURIComponent(userId)}/displayname`;
    return (await this.server.api('GET', path)).body['displayname'];
  }

  stop(): Promise<void> {
    return this.server.stop();
  }
}

/** Returns the login token of a page: from its redirect, or from the link of the confirmation page. */
export function tokenIn({ headers, body, status }: BrowserPage): string {
  const target =
    headers.location ?? /href="([^"]*loginToken=[^"]*)"/.exec(body)?.[1]?.replaceAll('&amp;', '&');
  assert.ok(target, `${status} ${body}`);
  const token = /[?&]loginToken=([^&#]+)/.exec(target)?.[1];
  assert.ok(token, target);
  return token;
}

/** Returns the options of single sign-on with all defaults. */
export const ssoOptions = (options: object) => sectionDefaults(ssoSection, options as never);
