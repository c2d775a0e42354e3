import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { deflateSync, gzipSync } from 'node:zlib';
import { eventually } from '../../../test/clients/eventually.ts';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { unlessDeleted } from '../../../test/support/files/stored-files.ts';
import { testImage } from '../../../test/support/inputs/images.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { PageReader } from '../pages/page-reader.ts';
import { head, og, PreviewServer, paths } from '../test/preview-server.ts';

const mebibyte = 1024 * 1024;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`limits of URL previews on ${database}`, () => {
    let previews: PreviewServer;
    let web: PreviewServer['web'];
    let image: Buffer<ArrayBuffer>;
    before(async () => {
      previews = await PreviewServer.start(database);
      web = previews.web;
      image = await testImage(64, 48);
    });
    after(() => previews.stop());

    it('refuses blocked addresses, also after a redirect and when a host name changes its address [option: url_preview_ip_range_blacklist]', async () => {
      assert.equal(await previews.previewOrError(web.url('/', 'private.test')), '403 M_FORBIDDEN');
      assert.equal(await previews.previewOrError('http://10.0.0.1/'), '403 M_FORBIDDEN');
      assert.equal(await previews.previewOrError('http://0.0.0.0/'), '403 M_FORBIDDEN');
      assert.equal(await previews.previewOrError('http://[::ffff:10.0.0.1]/'), '403 M_FORBIDDEN');
      for (const [index, to] of [
        web.url('/', 'private.test'),
        'http://10.1.2.3/',
        'file:///etc/passwd',
      ].entries()) {
        const from = web.set(`/redirect/${index}`, (_, response) =>
          response.writeHead(302, { location: to }).end(),
        );
        assert.match(String(await previews.previewOrError(from)), /^(403 M_FORBIDDEN|502 M_UNKNOWN)$/);
      }
      const changing = web.url('/changing', 'changing.test');
      web.set('/changing', (_, response) =>
        response
          .writeHead(200, { 'content-type': 'text/html', connection: 'close' })
          .end(head('<title>C</title>')),
      );
      assert.deepEqual(await previews.previewOrError(changing), { 'og:title': 'C' });
      assert.equal(await previews.previewOrError(`${changing}?again`), '403 M_FORBIDDEN');
    });

    it('fetches from whitelisted addresses [option: url_preview_ip_range_whitelist]', async () => {
      web.set('/excepted', head('<title>E</title>'));
      assert.deepEqual(await previews.previewOrError(web.url('/excepted', 'excepted.test')), {
        'og:title': 'E',
      });
    });

    it('refuses URLs whose parts match an entry, also URLs of images and URLs after redirects [option: url_preview_url_blacklist[].username] [option: url_preview_url_blacklist[].netloc] [option: url_preview_url_blacklist[].scheme] [option: url_preview_url_blacklist[].path]', async () => {
      for (const url of [
        web.url('/', 'user:pw@pages.test'),
        web.url('/', 'a.blocked.test'),
        web.url('/secret/abc', 'sub12.test'),
        'https://plain.test/',
      ])
        assert.equal(await previews.previewOrError(url), '403 M_FORBIDDEN', url);
      web.set('/secret/abc', head('<title>S</title>'));
      web.set('/secret/xyz', head('<title>S</title>'));
      assert.deepEqual(await previews.previewOrError(web.url('/secret/xyz', 'sub12.test')), {
        'og:title': 'S',
      });
      assert.deepEqual(await previews.previewOrError(web.url('/secret/abc', 'sub.test')), {
        'og:title': 'S',
      });
      const location = web.url('/secret/abc', 'sub1.test');
      const moved = web.set('/moved', (_, response) => response.writeHead(301, { location }).end());
      assert.equal(await previews.previewOrError(moved), '403 M_FORBIDDEN');
      web.set('/blocked.png', image, 'image/png');
      const page = head('<title>P</title>', og('image', web.url('/blocked.png', 'a.blocked.test')));
      assert.deepEqual(await previews.preview(web.set('/with-blocked', page)), { 'og:title': 'P' });
      assert.equal(web.count('/blocked.png'), 0);
    });

    it('refuses URLs by host, port, password and query, and no URL by an entry without patterns [option: url_preview_url_blacklist[].hostname] [option: url_preview_url_blacklist[].port] [option: url_preview_url_blacklist[].password] [option: url_preview_url_blacklist[].query]', async () => {
      for (const url of [
        web.url('/', 'a.exact.test'),
        'http://pages.test:1234/',
        web.url('/', ':xyz@login.test'),
        web.url('/?q=a', 'search.test'),
      ])
        assert.equal(await previews.previewOrError(url), '403 M_FORBIDDEN', url);
      web.set('/open', head('<title>O</title>'));
      for (const host of ['exact.test', ':y@login.test', 'login.test', 'search.test'])
        assert.deepEqual(await previews.previewOrError(web.url('/open', host)), { 'og:title': 'O' }, host);
    });

    it('refuses endless pages and pages above the limit, which counts bytes after decompression [option: max_spider_size]', async () => {
      const send = (body: Buffer, headers: Record<string, string>) =>
        web.set(`/large/${web.requests.length}`, (_, response) =>
          response.writeHead(200, { 'content-type': 'text/html', ...headers }).end(body),
        );
      const text = (length: number) => Buffer.from(head('<title>Size</title>').padEnd(length));
      assert.deepEqual(await previews.previewOrError(send(text(299_000), {})), { 'og:title': 'Size' });
      assert.equal(await previews.previewOrError(send(text(301_000), {})), '502 M_TOO_LARGE');
      const gzip = { 'content-encoding': 'gzip' };
      for (const [encoding, compress] of [
        ['gzip', gzipSync],
        ['deflate', deflateSync],
      ] as const) {
        const bomb = send(compress(text(2_990_000)), { 'content-encoding': encoding });
        assert.equal(await previews.previewOrError(bomb), '502 M_TOO_LARGE', encoding);
      }
      assert.deepEqual(await previews.previewOrError(send(gzipSync(text(290_000)), gzip)), {
        'og:title': 'Size',
      });
      const endless = web.set('/endless', (_, response) => {
        response.writeHead(200, { 'content-type': 'text/html' });
        const more = () => {
          if (!response.destroyed) response.write('<p>'.repeat(10_000), more);
        };
        more();
      });
      assert.equal(await previews.previewOrError(endless), '502 M_TOO_LARGE');
      const large = web.set('/large.png', Buffer.alloc(310_000), 'image/png');
      assert.deepEqual(
        await previews.preview(web.set('/large-image', head('<title>L</title>', og('image', large)))),
        {
          'og:title': 'L',
        },
      );
    });

    it('gives up a page that is not received in 20 seconds, and a page with more than five redirects', async () => {
      const slow = web.set('/slow-page', (_, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).write('<title>never');
      });
      const answer = previews.previewOrError(slow);
      await eventually('the request', () => web.count('/slow-page') === 1);
      previews.clock.advance(20_001);
      assert.equal(await answer, '504 M_UNKNOWN');
      const loop = web.set('/loop', (_, response) => response.writeHead(302, { location: '/loop' }).end());
      assert.equal(await previews.previewOrError(loop), '502 M_UNKNOWN');
      assert.equal(web.count('/loop'), 6);
    });

    it('answers each request for a hostile page with 200', async () => {
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
        assert.equal(
          (await previews.request(web.set(`/hostile/${index}`, page))).status,
          200,
          page.slice(0, 50),
        );
    });

    it('limits the number of concurrent previews of a user, and their rate', async () => {
      const heldResponses: ServerResponse[] = [];
      const { token } = await previews.server.register('bounded');
      const previewStatus = async (url: string) =>
        (await previews.server.api('GET', paths[0], { token, query: { url } })).status;
      const answered: number[] = [];
      const running = Array.from({ length: 21 }, async (_, index) => {
        web.set(`/slow/${index}`, (_request, response) => void heldResponses.push(response));
        answered.push(await previewStatus(web.url(`/slow/${index}`, `slow${index}.test`)));
      });
      await eventually('the refusal', () => answered.length === 1 && heldResponses.length === 20);
      web.set('/of-anna', head('<title>Quick</title>'));
      assert.deepEqual(await previews.preview(web.url('/of-anna')), { 'og:title': 'Quick' });
      assert.equal(await previewStatus(web.url('/of-anna')), 200, 'a stored preview');
      for (const response of heldResponses) response.writeHead(404).end();
      await Promise.all(running);
      assert.deepEqual([answered[0], new Set(answered.slice(1))], [429, new Set([502])]);
      // The limit allows 100 previews at once; each second of the test allows one more preview.
      let count = 20;
      let status = 502;
      while (status === 502 && count < 400) status = await previewStatus(web.url(`/none/${count++}`));
      assert.ok(status === 429 && count > 100, `${status} after ${count}`);
    });

    it('rejects pages while too many bytes wait for the process that reads pages, and returns an empty preview when that process is killed', async () => {
      const earlierProcesses = pageProcesses();
      const reader = new PageReader({
        clock: previews.clock,
        log: silentLogger,
        maxWaitingBytes: 2 * mebibyte,
      });
      const page = (mebibytes: number) => ({
        body: Buffer.alloc(mebibytes * mebibyte, '<title>'),
        contentType: 'text/html',
        url: new URL(web.url('/large')),
      });
      const small = { ...page(0), body: Buffer.from('<title>small</title>') };
      const titleOf = async () => (await reader.read('html', small)).properties['og:title'];
      assert.equal(await titleOf(), 'small');
      const first = reader.read('html', page(3));
      await assert.rejects(reader.read('html', page(1)), { errcode: 'M_LIMIT_EXCEEDED' });
      process.kill(pageProcesses().find((pid) => !earlierProcesses.includes(pid))!, 'SIGKILL');
      assert.deepEqual(await first, { properties: {}, images: [] });
      assert.equal(await titleOf(), 'small');
      const last = reader.read('html', page(3));
      reader.stop();
      await assert.rejects(last, { reason: 'stopped' });
    });
  });
}

/** Returns the process ids of the page readers that this process has started. */
function pageProcesses(): number[] {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ');
  return children.filter((pid) => pid !== '' && commandLineOf(pid).includes('page-process')).map(Number);
}

const commandLineOf = (pid: string) => unlessDeleted(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'), '');
