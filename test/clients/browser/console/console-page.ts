import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { CasServer } from '../../../../src/sso/test/cas-server.ts';
import { ssoOptions } from '../../../../src/sso/test/sso-server.ts';
import { freePort } from '../../../support/network/free-port.ts';
import { startTestServer, type TestServer } from '../../../support/servers/server.ts';
import { registerAdmin } from '../../../support/users/register-admin.ts';
import { TestClient } from '../../../support/users/test-client.ts';
import { launchChromium } from '../web-page.ts';

/** Folder for screenshots of the pages, for review by developers; none are taken when it is not set. */
const pictures = process.env['HEARTH_TEST_PICTURES'];

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const desk = { width: 1280, height: 860 };
const phone = { width: 390, height: 800 };

/** The parts that exist once a `ConsolePage` is started. */
interface Started {
  readonly server: TestServer;
  readonly cas: CasServer;
  readonly browser: Browser;
  readonly page: Page;
  readonly admin: TestClient;
  readonly anna: TestClient;
  readonly bela: TestClient;
  readonly roomId: string;
}

/**
 * The console in Chromium, on a server with the users Anna and Bela and Anna's rooms Meadow and Attic. Functions such
 * as `button` are bound to it, so that tests can destructure it before it is started.
 */
export class ConsolePage {
  /** Paths of all requests that scripts of the console have sent. */
  readonly requestedPaths = new Set<string>();
  /** Errors in the browser: exceptions of scripts, requests to other hosts, violations of the content security policy. */
  readonly errors: string[] = [];
  #started: Started | undefined;

  /** @param prepare adds data to the server before the console is opened */
  async start(prepare?: (console: ConsolePage) => Promise<void>): Promise<void> {
    const { server, cas } = await startServers();
    const admin = await registerAdmin(server);
    const anna = await TestClient.register(server, 'anna');
    const profile = `/_matrix/client/v3/profile/${anna.id}/displayname`;
    const renamed = await anna.request('PUT', profile, { displayname: 'Anna Ambers' });
    assert.equal(renamed.status, 200, renamed.raw);
    const meadow = { name: 'Meadow', preset: 'public_chat', room_alias_name: 'meadow' };
    const roomId = await anna.createRoom(meadow);
    await anna.createRoom({ name: 'Attic' });
    const bela = await TestClient.register(server, 'bela');
    const browser = await launchChromium();
    const context = await browser.newContext({ viewport: desk });
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    this.#started = { server, cas, browser, page, admin, anna, bela, roomId };
    this.#watch(page);
    await prepare?.(this);
  }

  /** Starts as `start` does, and signs the administrator in. */
  async startSignedIn(prepare?: (console: ConsolePage) => Promise<void>): Promise<void> {
    await this.start(prepare);
    await this.page.goto(`${this.server.baseUrl}/_server/admin/ui`);
    await this.page.getByLabel('User name').fill('admin');
    await this.page.getByLabel('Password').fill('password');
    await this.page.keyboard.press('Enter');
    await this.heading('Overview');
  }

  /**
   * Stops the browser and the servers.
   * @throws AssertionError when there was an error in the browser, or the console has sent an unexpected request
   */
  async stop(): Promise<void> {
    const { browser, server, cas } = this.#parts;
    await browser.close();
    await server.stop();
    await cas.stop();
    assert.deepEqual(this.errors, []);
    assert.deepEqual([...this.requestedPaths].filter(isUnexpected), []);
  }

  get #parts(): Started {
    if (!this.#started) throw new Error('The console has not been started');
    return this.#started;
  }

  get server(): TestServer {
    return this.#parts.server;
  }

  get cas(): CasServer {
    return this.#parts.cas;
  }

  get page(): Page {
    return this.#parts.page;
  }

  get admin(): TestClient {
    return this.#parts.admin;
  }

  get anna(): TestClient {
    return this.#parts.anna;
  }

  get bela(): TestClient {
    return this.#parts.bela;
  }

  /** The id of the room Meadow. */
  get roomId(): string {
    return this.#parts.roomId;
  }

  readonly heading = (name: string) => this.page.getByRole('heading', { level: 1, name }).waitFor();

  readonly status = (text: string | RegExp) =>
    this.page.getByRole('status').filter({ hasText: text }).first().waitFor();

  readonly button = (name: string) => this.page.getByRole('button', { name, exact: true });

  readonly link = (name: string) => this.page.getByRole('link', { name, exact: true });

  readonly dialog = () => this.page.getByRole('dialog');

  /** Clicks a button of the dialog. */
  readonly confirm = (name: string) => this.dialog().getByRole('button', { name, exact: true }).click();

  /** Checks the page with all rules of axe in both color schemes and on a phone, and takes pictures of it. */
  readonly checkView = async (name: string): Promise<void> => {
    const views = [
      ['light', 'light', desk],
      ['dark', 'dark', desk],
      ['phone', 'light', phone],
    ] as const;
    for (const [view, colorScheme, size] of views) {
      await this.page.setViewportSize(size);
      await this.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      const width = Number(await this.page.evaluate('document.documentElement.scrollWidth - innerWidth'));
      assert.ok(width <= 0, `the page ${name} is wider than the window of a ${view}`);
      if (pictures) {
        const path = join(pictures, `${name}-${view}.png`);
        await this.page.screenshot({ path, fullPage: view === 'phone' });
      }
      assert.deepEqual(await this.#violations(), [], `${name}, ${view}`);
    }
    await this.page.setViewportSize(desk);
  };

  /** Returns the violations of the rules that axe has for web pages. */
  async #violations(): Promise<readonly string[]> {
    if (!(await this.page.evaluate('Boolean(globalThis.axe)'))) await this.page.evaluate(axe);
    // Style sheets are not loaded again: no rule that is checked needs them.
    const options = { resultTypes: ['violations'], preload: false, iframes: false };
    return this.page.evaluate(`axe.run(document, ${JSON.stringify(options)}).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.html + ' ' + node.failureSummary)))`);
  }

  #watch(page: Page): void {
    page.on('pageerror', (error) => this.errors.push(String(error)));
    page.on('console', (message) => {
      const isExpected = /status of 40[0134]|ERR_INTERNET_DISCONNECTED/.test(message.text());
      if (message.type() === 'error' && !isExpected) this.errors.push(message.text());
    });
    page.on('request', (request) => {
      const isAllowed =
        [this.server.baseUrl, this.cas.url].some((url) => request.url().startsWith(url)) ||
        /^(data|blob):/.test(request.url());
      if (!isAllowed) this.errors.push(`request to ${request.url()}`);
      if (request.resourceType() === 'fetch') this.requestedPaths.add(new URL(request.url()).pathname);
    });
  }
}

/**
 * Whether the console should send no request to a path: it uses the admin API, and the client API only to sign in and
 * out. It should not request the deletions of a room from their own endpoint, which answers 404 for a room that was never
 * deleted: browsers log this as an error.
 */
export const isUnexpected = (path: string): boolean =>
  !/^\/_server\/admin\/v\d\/|^\/_proto\/client\/v3\/(login|logout)$/.test(path) ||
  path.endsWith('/delete_status');

async function startServers(): Promise<Pick<Started, 'server' | 'cas'>> {
  const port = await freePort();
  const listener = { port, type: 'http', bind_addresses: ['127.0.0.1'], resources: [{ names: ['client'] }] };
  const cas = await CasServer.start();
  const server = await startTestServer({
    database: 'sqlite',
    origins: new Map([
      ['server_name', { file: '/etc/hearth/hearth.yaml', line: 3, column: 1 }],
      ['signing_key_path', undefined],
    ]),
    config: {
      http: { listeners: [listener] } as never,
      server: { server_name: 'test', public_baseurl: `http://127.0.0.1:${port}/` },
      sso: ssoOptions({ cas_config: { enabled: true, idp_name: 'University', server_url: cas.url } }),
      outbound: { ip_range_blacklist: [] },
      serverNotices: { server_notices: { system_mxid_localpart: 'notices' } as never },
    },
  });
  return { server, cas };
}
