import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { eventually } from '../../test/clients/eventually.ts';
import { type SkippableClock, skippableClock } from '../../test/support/clocks/skippable-clock.ts';
import { serverDatabases } from '../../test/support/databases/databases.ts';
import { testImage } from '../../test/support/inputs/images.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestUser,
} from '../../test/support/servers/server.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { PageReader } from './pages/page-reader.ts';
import { type FakeWeb, startFakeWeb } from './test/fake-web.ts';

const hour = 3_600_000;
const paths = ['/_matrix/client/v1/media/preview_url', '/_matrix/media/v3/preview_url'] as const;
type PreviewOptions = NonNullable<ConfigurationOverrides['urlPreviews']>;

const head = (...elements: string[]) => `<html><head>${elements.join('')}</head><body></body></html>`;
const og = (name: string, value: string) => `<meta property="og:${name}" content="${value}">`;

for (const database of serverDatabases(import.meta.url)) {
  describe(`URL previews on ${database}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-previews-'));
    const store = join(folder, 'store');
    let web: FakeWeb;
    let server: TestServer;
    let anna: TestUser;
    let clock: SkippableClock;
    let image: Buffer<ArrayBuffer>;

    const start = (urlPreviews: PreviewOptions, media_store_path: string) =>
      startTestServer({
        database,
        clock,
        resolver: web.resolver,
        config: {
          urlPreviews: { url_preview_enabled: true, url_preview_ip_range_blacklist: [], ...urlPreviews },
          media: { media_store_path },
        },
      });
    const ask = (url: string, more: Record<string, number> = {}, at: string = paths[0]) =>
      server.api('GET', at, { token: anna.token, query: { url, ...more } });
    const preview = async (url: string, more: Record<string, number> = {}) => {
      const { status, body } = await ask(url, more);
      assert.equal(status, 200, JSON.stringify(body));
      return body;
    };
    const codeOf = async (url: string) => {
      const { status, body } = await ask(url);
      return status === 200 ? body : `${status} ${body['errcode']}`;
    };
    const download = async (uri: unknown) => {
      const path = String(uri).replace('mxc://', '/_matrix/client/v1/media/download/');
      const headers = { authorization: `Bearer ${anna.token}` };
      const response = await fetch(server.baseUrl + path, { headers });
      return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
    };

    before(async () => {
      clock = skippableClock();
      web = await startFakeWeb({
        'private.test': () => '10.0.0.1',
        'excepted.test': () => '127.0.0.1',
        'changing.test': (lookup) => (lookup === 1 ? '127.0.0.1' : '10.0.0.1'),
        'youtu.be': () => undefined,
        'www.youtube.com': () => undefined,
      });
      const providers = join(folder, 'providers.json');
      writeFileSync(
        providers,
        JSON.stringify([
          {
            provider_name: 'Clips',
            endpoints: [
              { schemes: [web.url('/clips/*', '*.clips.test')], url: web.url('/clip-info.{format}') },
            ],
          },
        ]),
      );
      server = await start(
        {
          url_preview_ip_range_blacklist: ['10.0.0.0/8', '127.0.0.0/8'],
          url_preview_ip_range_whitelist: ['127.0.0.1'],
          url_preview_url_blacklist: [
            { username: '*' },
            { netloc: '*.blocked.test:*' },
            { netloc: '^sub[0-9]+\\.', path: '/secret/[a-c]*' },
            { scheme: 'https', netloc: 'plain.test' },
          ],
          max_spider_size: 300_000,
          url_preview_accept_language: ['nl', 'en;q=0.5', '*;q=0.1'],
          oembed: { additional_providers: [providers] },
        },
        store,
      );
      anna = await server.register('anna');
      image = await testImage(64, 48);
    });
    after(async () => {
      await server.stop();
      await web.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    it('answers with Open Graph data and a copy of the image, at both paths [option: url_preview_enabled]', async () => {
      web.set('/picture.png', image, 'image/png');
      const url = web.set(
        '/graph',
        head(
          og('title', 'A &amp; B'),
          og('description', 'text'),
          og('image', '/picture.png'),
          og('image:width', '9'),
        ),
      );
      for (const path of paths) {
        const { body } = await ask(url, {}, path);
        const { 'og:image': uri, ...rest } = body;
        assert.deepEqual(rest, {
          'og:title': 'A & B',
          'og:description': 'text',
          'og:image:type': 'image/png',
          'og:image:width': 64,
          'og:image:height': 48,
          'matrix:image:size': image.length,
        });
        assert.deepEqual((await download(uri)).bytes, image);
      }
      assert.equal(web.count('/graph'), 1);
      const anonymous = await server.api('GET', paths[0], { query: { url } });
      assert.deepEqual([anonymous.status, anonymous.body['errcode']], [401, 'M_MISSING_TOKEN']);
    });

    it('takes missing properties from Twitter cards, JSON-LD and the page itself, in this order', async () => {
      const cases: readonly (readonly [string, Record<string, string>])[] = [
        [
          head(
            og('title', 'Graph'),
            '<meta name="twitter:title" content="Card"><meta name="twitter:description" content="D">',
          ),
          { 'og:title': 'Graph', 'og:description': 'D' },
        ],
        [
          head(
            '<title>Page</title><script type="application/ld+json">{"@graph":[{"headline":"Headline","description":"Linked","publisher":{"name":"Paper"}}]}</script>',
          ),
          { 'og:title': 'Headline', 'og:description': 'Linked', 'og:site_name': 'Paper' },
        ],
        [
          head('<title> A\n title </title><meta name="description" content="D">'),
          { 'og:title': 'A title', 'og:description': 'D' },
        ],
        [
          '<body><nav>Menu</nav><h2>Heading</h2><p>One <b>bold</b> text.</p><script>code()</script><p>Two.',
          { 'og:title': 'Heading', 'og:description': 'Heading\n\nOne bold text.\n\nTwo.' },
        ],
        [
          head(`<title>Long</title>${og('x'.repeat(80), 'value')}${og('description', 'y'.repeat(1_200))}`),
          { 'og:title': 'Long' },
        ],
        ['', {}],
      ];
      for (const [index, [page, expected]] of cases.entries())
        assert.deepEqual(await preview(web.set(`/kinds/${index}`, page)), expected, page);
    });

    it('shows the icon of a page without other images, and skips files that are not images', async () => {
      web.set('/icon.png', image, 'image/png');
      web.set('/no-image.png', 'text', 'image/png');
      const url = web.set(
        '/icons/page',
        head(
          '<title>I</title><base href="/"><link rel="shortcut icon" href="icon.png">',
          og('image', '/no-image.png'),
        ),
      );
      assert.equal((await preview(url))['og:image:width'], 64);
      const bad = web.set('/icons/none', head('<title>I</title>', og('image', '/no-image.png')));
      assert.deepEqual(await preview(bad), { 'og:title': 'I' });
    });

    it('decodes pages by byte order mark, header, meta, XML declaration, and else as UTF-8 or Windows-1252', async () => {
      const title = (text: string, more = '') => head(`${more}<title>${text}</title>`);
      const cases: readonly (readonly [Buffer, string, string])[] = [
        [Buffer.from(`\ufeff${title('Ж')}`), 'text/html; charset=iso-8859-1', 'Ж'],
        [Buffer.from(`\ufeff${title('Ж')}`, 'utf16le'), 'text/html', 'Ж'],
        [Buffer.from(title('caf\xe9'), 'latin1'), 'text/html; charset=ISO-8859-1', 'café'],
        [Buffer.from(title('\xc6', '<meta charset="koi8-r">'), 'latin1'), 'text/html', 'ф'],
        [
          Buffer.from(`<?xml version="1.0" encoding="windows-1251"?>${title('\xc6')}`, 'latin1'),
          'text/html',
          'Ж',
        ],
        [Buffer.from(title('caf\xe9'), 'latin1'), 'text/html; charset=utf-8', 'café'],
        [Buffer.from(title('日本')), 'text/html; charset=unknown', '日本'],
        [Buffer.from(title('\x82\xa0'), 'latin1'), 'text/html; charset=shift_jis', 'あ'],
      ];
      for (const [index, [page, type, expected]] of cases.entries()) {
        const url = web.set(`/charsets/${index}`, page, type);
        assert.equal((await preview(url))['og:title'], expected, `${index}`);
      }
    });

    it('previews URLs of images and videos', async () => {
      const ofImage = await preview(web.set('/a%20photo.png', image, 'image/png'));
      assert.deepEqual([ofImage['og:description'], ofImage['og:image:height']], ['a photo.png', 48]);
      const film = web.set('/film.mp4', (_, response) => {
        response.writeHead(200, { 'content-type': 'video/mp4' }).write('endless');
      });
      assert.deepEqual(await preview(film), {
        'og:title': 'film.mp4',
        'og:type': 'video.other',
        'og:video': film,
        'og:video:type': 'video/mp4',
      });
      assert.deepEqual(await preview(web.set('/data.bin', 'x', 'application/octet-stream')), {});
    });

    it('requests pages in the configured languages [option: url_preview_accept_language]', async () => {
      await preview(web.set('/language', head('<title>L</title>')));
      const asked = web.requests.find(({ path }) => path === '/language');
      assert.equal(asked?.headers['accept-language'], 'nl, en;q=0.5, *;q=0.1');
    });

    it('refuses blocked addresses, also after a redirect and when a host name changes its address [option: url_preview_ip_range_blacklist]', async () => {
      assert.equal(await codeOf(web.url('/', 'private.test')), '403 M_FORBIDDEN');
      assert.equal(await codeOf('http://10.0.0.1/'), '403 M_FORBIDDEN');
      assert.equal(await codeOf('http://0.0.0.0/'), '403 M_FORBIDDEN');
      assert.equal(await codeOf('http://[::ffff:10.0.0.1]/'), '403 M_FORBIDDEN');
      for (const [index, to] of [
        web.url('/', 'private.test'),
        'http://10.1.2.3/',
        'file:///etc/passwd',
      ].entries()) {
        const from = web.set(`/redirect/${index}`, (_, response) =>
          response.writeHead(302, { location: to }).end(),
        );
        assert.match(String(await codeOf(from)), /^(403 M_FORBIDDEN|502 M_UNKNOWN)$/);
      }
      const changing = web.url('/changing', 'changing.test');
      web.set('/changing', (_, response) =>
        response
          .writeHead(200, { 'content-type': 'text/html', connection: 'close' })
          .end(head('<title>C</title>')),
      );
      assert.deepEqual(await codeOf(changing), { 'og:title': 'C' });
      assert.equal(await codeOf(`${changing}?again`), '403 M_FORBIDDEN');
    });

    it('fetches from whitelisted addresses [option: url_preview_ip_range_whitelist]', async () => {
      web.set('/excepted', head('<title>E</title>'));
      assert.deepEqual(await codeOf(web.url('/excepted', 'excepted.test')), { 'og:title': 'E' });
    });

    it('refuses URLs whose parts match an entry, also as images and after redirects [option: url_preview_url_blacklist[].username] [option: url_preview_url_blacklist[].netloc] [option: url_preview_url_blacklist[].scheme] [option: url_preview_url_blacklist[].path]', async () => {
      for (const url of [
        web.url('/', 'user:pw@pages.test'),
        web.url('/', 'a.blocked.test'),
        web.url('/secret/abc', 'sub12.test'),
        'https://plain.test/',
      ])
        assert.equal(await codeOf(url), '403 M_FORBIDDEN', url);
      web.set('/secret/abc', head('<title>S</title>'));
      web.set('/secret/xyz', head('<title>S</title>'));
      assert.deepEqual(await codeOf(web.url('/secret/xyz', 'sub12.test')), { 'og:title': 'S' });
      assert.deepEqual(await codeOf(web.url('/secret/abc', 'sub.test')), { 'og:title': 'S' });
      const location = web.url('/secret/abc', 'sub1.test');
      const moved = web.set('/moved', (_, response) => response.writeHead(301, { location }).end());
      assert.equal(await codeOf(moved), '403 M_FORBIDDEN');
      web.set('/blocked.png', image, 'image/png');
      const page = head('<title>P</title>', og('image', web.url('/blocked.png', 'a.blocked.test')));
      assert.deepEqual(await preview(web.set('/with-blocked', page)), { 'og:title': 'P' });
      assert.equal(web.count('/blocked.png'), 0);
    });

    it('refuses endless pages and pages above the limit, which counts bytes after decompression [option: max_spider_size]', async () => {
      const send = (body: Buffer, headers: Record<string, string>) =>
        web.set(`/large/${web.requests.length}`, (_, response) =>
          response.writeHead(200, { 'content-type': 'text/html', ...headers }).end(body),
        );
      const text = (length: number) => Buffer.from(head('<title>Size</title>').padEnd(length));
      assert.deepEqual(await codeOf(send(text(299_000), {})), { 'og:title': 'Size' });
      assert.equal(await codeOf(send(text(301_000), {})), '502 M_TOO_LARGE');
      const gzip = { 'content-encoding': 'gzip' };
      assert.equal(await codeOf(send(gzipSync(text(2_990_000)), gzip)), '502 M_TOO_LARGE');
      assert.deepEqual(await codeOf(send(gzipSync(text(290_000)), gzip)), { 'og:title': 'Size' });
      const endless = web.set('/endless', (_, response) => {
        response.writeHead(200, { 'content-type': 'text/html' });
        const more = () => {
          if (!response.destroyed) response.write('<p>'.repeat(10_000), more);
        };
        more();
      });
      assert.equal(await codeOf(endless), '502 M_TOO_LARGE');
      const large = web.set('/large.png', Buffer.alloc(310_000), 'image/png');
      assert.deepEqual(await preview(web.set('/large-image', head('<title>L</title>', og('image', large)))), {
        'og:title': 'L',
      });
    });

    it('previews pages of listed sites by oEmbed [option: oembed.additional_providers]', async () => {
      web.set('/thumb.png', image, 'image/png');
      const response = {
        type: 'video',
        title: 'A clip',
        provider_name: 'Clips',
        thumbnail_url: web.url('/thumb.png'),
        html: '<iframe src="https://player.test/1"></iframe>',
      };
      web.set('/clip-info.json', JSON.stringify(response), 'application/json');
      const clip = web.url('/clips/1', 'www.clips.test');
      const { 'og:image': uri, ...rest } = await preview(clip);
      assert.match(String(uri), /^mxc:\/\/test\//);
      assert.deepEqual(
        [rest['og:title'], rest['og:site_name'], rest['og:type'], rest['og:video'], rest['og:image:width']],
        ['A clip', 'Clips', 'video.other', 'https://player.test/1', 64],
      );
      const asked = new URL(web.requests.find(({ path }) => path.startsWith('/clip-info'))!.path, 'http://a');
      assert.deepEqual([asked.searchParams.get('url'), asked.searchParams.get('format')], [clip, 'json']);
    });

    it('follows the link of a page to its oEmbed response, in JSON or XML, and only once', async () => {
      const linked = (path: string, type: string) =>
        head(`<link rel="alternate" type="${type}+oembed" href="${path}">`);
      web.set(
        '/embed.json',
        '{"type":"rich","author_name":"Ann","html":"<p>Said &lt;this&gt;.</p>"}',
        'application/json',
      );
      assert.deepEqual(await preview(web.set('/linked/json', linked('/embed.json', 'application/json'))), {
        'og:title': 'Ann',
        'og:description': 'Said <this>.',
      });
      web.set(
        '/embed.xml',
        '<?xml version="1.0"?><oembed><type>link</type><title>X &amp; Y</title></oembed>',
        'text/xml',
      );
      assert.deepEqual(await preview(web.set('/linked/xml', linked('/embed.xml', 'text/xml'))), {
        'og:title': 'X & Y',
        'og:type': 'website',
      });
      const itself = web.set('/linked/itself', linked('/linked/itself', 'application/json'));
      assert.deepEqual(await preview(itself), {});
      assert.equal(web.count('/linked/itself'), 2);
    });

    it('fetches a URL once an hour for all users, and answers requests with an earlier ts from stored previews', async () => {
      let version = 0;
      const url = web.set('/news', (_, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end(head(`<title>${++version}</title>`));
      });
      const ben = await server.register('ben');
      const [first, ...others] = await Promise.all([
        ask(url),
        ...Array.from({ length: 5 }, () =>
          server.api('GET', paths[1], { token: ben.token, query: { url: `${url}#part` } }),
        ),
      ]);
      assert.deepEqual(
        others.map(({ body }) => body),
        Array(5).fill(first!.body),
      );
      assert.equal(web.count('/news'), 1);
      const then = clock.now();
      clock.advance(hour);
      assert.deepEqual(await preview(url), { 'og:title': '2' });
      assert.deepEqual(await preview(url, { ts: then }), { 'og:title': '1' });
      assert.deepEqual(await preview(url, { ts: clock.now() + 9 * hour }), { 'og:title': '2' });
    });

    it('caches a failure for five minutes', async () => {
      const url = web.url('/missing-page');
      assert.equal(await codeOf(url), '502 M_UNKNOWN');
      assert.equal(await codeOf(url), '502 M_UNKNOWN');
      assert.equal(web.count('/missing-page'), 1);
      clock.advance(5 * 60_000);
      web.set('/missing-page', head('<title>Found</title>'));
      assert.deepEqual(await codeOf(url), { 'og:title': 'Found' });
      for (const invalid of ['malformed', 'ftp://pages.test/', 'data:text/html,x'])
        assert.equal(await codeOf(invalid), '400 M_INVALID_PARAM');
    });

    it('answers requests for hostile pages, and continues to preview other pages', async () => {
      const pages = [
        '<div>'.repeat(50_000),
        `${'<a>'.repeat(40_000)}${'</b>'.repeat(40_000)}`,
        `<meta property="og:title" content="${'x'.repeat(250_000)}`,
        head(`<script type="application/ld+json">${'['.repeat(100_000)}</script>`),
        `<title>${'<title>'.repeat(30_000)}`,
        `<body>${'&amp;'.repeat(50_000)}`,
        '<meta property="og:title" content="\ud800&#0;&#xd800;">',
        `<meta${' a=b'.repeat(60_000)}>`,
        '<!'.repeat(100_000),
      ];
      for (const [index, page] of pages.entries())
        assert.equal((await ask(web.set(`/hostile/${index}`, page))).status, 200, page.slice(0, 50));
    });

    it('bounds the previews that are made for one user, at the same time and by rate', async () => {
      const held: ServerResponse[] = [];
      const { token } = await server.register('bounded');
      const askAsUser = async (url: string) =>
        (await server.api('GET', paths[0], { token, query: { url } })).status;
      const answered: number[] = [];
      const running = Array.from({ length: 21 }, async (_, index) => {
        web.set(`/slow/${index}`, (_request, response) => void held.push(response));
        answered.push(await askAsUser(web.url(`/slow/${index}`, `slow${index}.test`)));
      });
      await eventually('the refusal', () => answered.length === 1 && held.length === 20);
      web.set('/of-anna', head('<title>Quick</title>'));
      assert.deepEqual(await preview(web.url('/of-anna')), { 'og:title': 'Quick' });
      assert.equal(await askAsUser(web.url('/of-anna')), 200, 'a preview that is made already');
      for (const response of held) response.writeHead(404).end();
      await Promise.all(running);
      assert.deepEqual([answered[0], new Set(answered.slice(1))], [429, new Set([502])]);
      // The limit allows 100 at once; each second of the test allows one more.
      let [count, status] = [20, 502];
      while (status === 502 && count < 400) status = await askAsUser(web.url(`/none/${count++}`));
      assert.ok(status === 429 && count > 100, `${status} after ${count}`);
    });

    it('reads pages only while few bytes wait for the process that reads them', async () => {
      const reader = new PageReader({ clock, log: silentLogger });
      const page = (mebibytes: number) => ({
        body: Buffer.alloc(mebibytes * 1024 * 1024, '<title>'),
        contentType: 'text/html',
        url: new URL(web.url('/large')),
      });
      const first = reader.read('html', page(17));
      await assert.rejects(reader.read('html', page(1)), { errcode: 'M_LIMIT_EXCEEDED' });
      reader.stop();
      await assert.rejects(first, { reason: 'stopped' });
    });

    it('deletes images and stored previews after some days', async () => {
      web.set('/brief.png', image, 'image/png');
      const url = web.set('/brief', head(og('image', '/brief.png')));
      const { 'og:image': uri } = await preview(url);
      assert.equal((await download(uri)).status, 200);
      clock.advance(4 * 24 * hour);
      await eventually('the image to be deleted', async () => (await download(uri)).status === 404);
      const files = () =>
        readdirSync(join(store, 'local'), { recursive: true, withFileTypes: true }).filter((entry) =>
          entry.isFile(),
        );
      await eventually('all files of images to be deleted', () => files().length === 0);
      await preview(url, { ts: 0 });
      assert.equal(web.count('/brief'), 2);
    });

    describe('with other options', () => {
      it('uses the built-in list of oEmbed providers, unless it is disabled [option: oembed.disable_default_providers]', async () => {
        const url = 'https://youtu.be/abc';
        await ask(url);
        assert.deepEqual(
          web.lookups.filter((host) => host.includes('you')),
          ['www.youtube.com', 'youtu.be'],
        );
        web.lookups.length = 0;
        const other = await start({ oembed: { disable_default_providers: true } }, join(folder, 'other'));
        try {
          const { token } = await other.register('anna');
          const { status } = await other.api('GET', paths[0], { token, query: { url } });
          assert.equal(status, 502);
          assert.deepEqual(web.lookups, ['youtu.be']);
        } finally {
          await other.stop();
        }
      });
    });
  });
}
