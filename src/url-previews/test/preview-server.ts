import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SkippableClock, skippableClock } from '../../../test/support/clocks/skippable-clock.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestUser,
} from '../../../test/support/servers/server.ts';
import type { DatabaseOptions } from '../../kernel/database/index.ts';
import { type FakeWeb, startFakeWeb } from './fake-web.ts';

/** The paths of the endpoint below `/_matrix/client` and `/_matrix/media`, without older versions. */
export const paths = ['/_matrix/client/v1/media/preview_url', '/_matrix/media/v3/preview_url'] as const;

type PreviewOptions = NonNullable<ConfigurationOverrides['urlPreviews']>;
type Database = DatabaseOptions['kind'];

/** Returns a page with these elements in its head. */
export const head = (...elements: string[]) => `<html><head>${elements.join('')}</head><body></body></html>`;

/** Returns an Open Graph property. */
export const og = (name: string, value: string) => `<meta property="og:${name}" content="${value}">`;

/** Milliseconds that reading a page may take on a server outside of these tests. */
const pageTimeout = 5_000;

/** Milliseconds that reading a page may take in these tests. */
const testPageTimeout = 60_000;

/**
 * Returns a clock with more time for pages: their process has a low priority, and receives little processor time on a
 * busy machine.
 */
function clockForSlowPages(): SkippableClock {
  const clock = skippableClock();
  return {
    ...clock,
    setTimer: (delay, callback) => clock.setTimer(delay === pageTimeout ? testPageTimeout : delay, callback),
  };
}

/** A server with URL previews, one of its users, and the fake web that it fetches pages from. */
export class PreviewServer {
  readonly web: FakeWeb;
  readonly clock: SkippableClock;
  readonly server: TestServer;
  readonly anna: TestUser;
  /** `media_store_path`. */
  readonly store: string;
  readonly #folder: string;
  readonly #database: Database;

  private constructor(
    shared: Pick<PreviewServer, 'web' | 'clock' | 'store'>,
    started: Pick<PreviewServer, 'server' | 'anna'>,
    folder: string,
    database: Database,
  ) {
    this.web = shared.web;
    this.clock = shared.clock;
    this.store = shared.store;
    this.server = started.server;
    this.anna = started.anna;
    this.#folder = folder;
    this.#database = database;
  }

  /**
   * Starts the fake web and a server. The server may fetch pages from 127.0.0.1, the address of most hosts of the fake
   * web, and not from 10.0.0.1, the address of some hosts.
   */
  static async start(database: Database): Promise<PreviewServer> {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-previews-'));
    const clock = clockForSlowPages();
    const web = await startFakeWeb({
      'private.test': () => '10.0.0.1',
      'excepted.test': () => '127.0.0.1',
      'changing.test': (lookup) => (lookup === 1 ? '127.0.0.1' : '10.0.0.1'),
      'youtu.be': () => undefined,
      'www.youtube.com': () => undefined,
    });
    const providers = join(folder, 'providers.json');
    const endpoint = {
      schemes: [web.url('/clips/*', '*.clips.test')],
      url: web.url('/clip-info.{format}'),
    };
    writeFileSync(providers, JSON.stringify([{ provider_name: 'Clips', endpoints: [endpoint] }]));
    const store = join(folder, 'store');
    const server = await startServer(
      { database, clock, web },
      {
        url_preview_ip_range_blacklist: ['10.0.0.0/8', '127.0.0.0/8'],
        url_preview_ip_range_whitelist: ['127.0.0.1'],
        url_preview_url_blacklist: [
          { username: '*' },
          { netloc: '*.blocked.test:*' },
          { netloc: '^sub[0-9]+\\.', path: '/secret/[a-c]*' },
          { scheme: 'https', netloc: 'plain.test' },
          { hostname: '*.exact.test' },
          { port: '1234' },
          { hostname: 'login.test', password: 'x*' },
          { hostname: 'search.test', query: 'q=*' },
          {},
        ],
        max_spider_size: 300_000,
        url_preview_accept_language: ['nl', 'en;q=0.5', '*;q=0.1'],
        oembed: { additional_providers: [providers] },
      },
      store,
    );
    const anna = await server.register('anna');
    return new PreviewServer({ web, clock, store }, { server, anna }, folder, database);
  }

  /** Starts another server with other options. The caller must stop it. */
  startOther(options: PreviewOptions): Promise<TestServer> {
    const { clock, web } = this;
    return startServer({ database: this.#database, clock, web }, options, join(this.#folder, 'other'));
  }

  /** Requests the preview of a URL as anna. */
  request(url: string, parameters: Record<string, number> = {}, path: string = paths[0]) {
    return this.server.api('GET', path, { token: this.anna.token, query: { url, ...parameters } });
  }

  /** Returns a preview. @throws AssertionError when the response is an error */
  async preview(url: string, parameters: Record<string, number> = {}) {
    const { status, body } = await this.request(url, parameters);
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  }

  /** Returns a preview, or the status and error code of the response. */
  async previewOrError(url: string) {
    const { status, body } = await this.request(url);
    return status === 200 ? body : `${status} ${body['errcode']}`;
  }

  /** Downloads the media of an `mxc://` URI as anna. */
  async download(uri: unknown) {
    const path = String(uri).replace('mxc://', '/_matrix/client/v1/media/download/');
    const headers = { authorization: `Bearer ${this.anna.token}` };
    const response = await fetch(this.server.baseUrl + path, { headers });
    return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await this.web.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function startServer(
  { database, clock, web }: { database: Database; clock: SkippableClock; web: FakeWeb },
  urlPreviews: PreviewOptions,
  media_store_path: string,
): Promise<TestServer> {
  return startTestServer({
    database,
    clock,
    resolver: web.resolver,
    config: {
      urlPreviews: { url_preview_enabled: true, url_preview_ip_range_blacklist: [], ...urlPreviews },
      media: { media_store_path },
    },
  });
}
