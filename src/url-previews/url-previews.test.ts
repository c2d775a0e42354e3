import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../test/clients/eventually.ts';
import { selectedDatabases } from '../../test/support/databases/databases.ts';
import { filesBelow } from '../../test/support/files/stored-files.ts';
import { testImage } from '../../test/support/inputs/images.ts';
import { head, og, PreviewServer, paths } from './test/preview-server.ts';

const hour = 3_600_000;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`URL previews on ${database}`, () => {
    let previews: PreviewServer;
    let web: PreviewServer['web'];
    let image: Buffer<ArrayBuffer>;
    before(async () => {
      previews = await PreviewServer.start(database);
      web = previews.web;
      image = await testImage(64, 48);
    });
    after(() => previews.stop());

    it('returns Open Graph data and a copy of the image, below /_matrix/client and /_matrix/media [option: url_preview_enabled]', async () => {
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
        const { body } = await previews.request(url, {}, path);
        const { 'og:image': uri, ...rest } = body;
        assert.deepEqual(rest, {
          'og:title': 'A & B',
          'og:description': 'text',
          'og:image:type': 'image/png',
          'og:image:width': 64,
          'og:image:height': 48,
          'matrix:image:size': image.length,
        });
        assert.deepEqual((await previews.download(uri)).bytes, image);
      }
      assert.equal(web.count('/graph'), 1);
    });

    it('answers 401 M_MISSING_TOKEN to requests without an access token', async () => {
      const url = web.url('/graph');
      const anonymous = await previews.server.api('GET', paths[0], { query: { url } });
      assert.deepEqual([anonymous.status, anonymous.body['errcode']], [401, 'M_MISSING_TOKEN']);
    });

    it('takes missing Open Graph properties from Twitter cards, JSON-LD and the page itself, in this order', async () => {
      const cases: readonly (readonly [page: string, expected: Record<string, string>])[] = [
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
        assert.deepEqual(await previews.preview(web.set(`/kinds/${index}`, page)), expected, page);
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
      assert.equal((await previews.preview(url))['og:image:width'], 64);
      const bad = web.set('/icons/none', head('<title>I</title>', og('image', '/no-image.png')));
      assert.deepEqual(await previews.preview(bad), { 'og:title': 'I' });
    });

    it('shows the largest image in the text of a page without image properties, or else the first image without a size', async () => {
      web.set('/text/small.png', await testImage(12, 12), 'image/png');
      web.set('/text/large.png', await testImage(40, 30), 'image/png');
      const dot = '<img src="/text/small.png" width="1" height="1"><img src="/text/small.png" width=1>';
      const inline = '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">';
      const small = '<img src="/text/small.png">';
      const large = '<img src="large.png">';
      const largeWithSize = '<img src="large.png" width="40" height="30px">';
      const icon = '<link rel=icon href="/text/small.png">';
      const cases = [
        [`<body>${dot}${inline}${large}${small}`, 40],
        [`<body>${small}${largeWithSize}`, 40],
        [`<head>${icon}<body>${dot}${large}`, 40],
        [`<head>${icon}<body>${dot}${inline}`, 12],
        [`<body>${dot}${inline}`, undefined],
      ] as const;
      for (const [index, [page, width]] of cases.entries())
        assert.equal(
          (await previews.preview(web.set(`/text/${index}`, page)))['og:image:width'],
          width,
          page,
        );
    });

    it('decodes pages by byte order mark, Content-Type header, meta element or XML declaration, and otherwise as UTF-8 or Windows-1252', async () => {
      const title = (text: string, more = '') => head(`${more}<title>${text}</title>`);
      const cases: readonly (readonly [page: Buffer, contentType: string, title: string])[] = [
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
        assert.equal((await previews.preview(url))['og:title'], expected, `${index}`);
      }
    });

    it('previews URLs of images and videos', async () => {
      const imagePreview = await previews.preview(web.set('/a%20photo.png', image, 'image/png'));
      assert.deepEqual(
        [imagePreview['og:description'], imagePreview['og:image:height']],
        ['a photo.png', 48],
      );
      const film = web.set('/film.mp4', (_, response) => {
        response.writeHead(200, { 'content-type': 'video/mp4' }).write('endless');
      });
      assert.deepEqual(await previews.preview(film), {
        'og:title': 'film.mp4',
        'og:type': 'video.other',
        'og:video': film,
        'og:video:type': 'video/mp4',
      });
      assert.deepEqual(await previews.preview(web.set('/data.bin', 'x', 'application/octet-stream')), {});
    });

    it('requests pages in the configured languages [option: url_preview_accept_language]', async () => {
      await previews.preview(web.set('/language', head('<title>L</title>')));
      const request = web.requests.find(({ path }) => path === '/language');
      assert.equal(request?.headers['accept-language'], 'nl, en;q=0.5, *;q=0.1');
    });

    it('previews pages of additional oEmbed providers from their oEmbed responses [option: oembed.additional_providers]', async () => {
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
      const { 'og:image': uri, ...rest } = await previews.preview(clip);
      assert.match(String(uri), /^mxc:\/\/test\//);
      assert.deepEqual(
        [rest['og:title'], rest['og:site_name'], rest['og:type'], rest['og:video'], rest['og:image:width']],
        ['A clip', 'Clips', 'video.other', 'https://player.test/1', 64],
      );
      const request = new URL(
        web.requests.find(({ path }) => path.startsWith('/clip-info'))!.path,
        'http://a',
      );
      assert.deepEqual([request.searchParams.get('url'), request.searchParams.get('format')], [clip, 'json']);
    });

    it('follows the link of a page to its oEmbed response, in JSON or XML, and no link in that response', async () => {
      const linked = (path: string, type: string) =>
        head(`<link rel="alternate" type="${type}+oembed" href="${path}">`);
      web.set(
        '/embed.json',
        '{"type":"rich","author_name":"Ann","html":"<p>Said &lt;this&gt;.</p>"}',
        'application/json',
      );
      assert.deepEqual(
        await previews.preview(web.set('/linked/json', linked('/embed.json', 'application/json'))),
        {
          'og:title': 'Ann',
          'og:description': 'Said <this>.',
        },
      );
      web.set(
        '/embed.xml',
        '<?xml version="1.0"?><oembed><type>link</type><title>X &amp; Y</title></oembed>',
        'text/xml',
      );
      assert.deepEqual(await previews.preview(web.set('/linked/xml', linked('/embed.xml', 'text/xml'))), {
        'og:title': 'X & Y',
        'og:type': 'website',
      });
      const selfLinked = web.set('/linked/itself', linked('/linked/itself', 'application/json'));
      assert.deepEqual(await previews.preview(selfLinked), {});
      assert.equal(web.count('/linked/itself'), 2);
    });

    it('fetches a URL once an hour for all users, and answers requests with an earlier ts from stored previews', async () => {
      let version = 0;
      const url = web.set('/news', (_, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end(head(`<title>${++version}</title>`));
      });
      const ben = await previews.server.register('ben');
      const [first, ...others] = await Promise.all([
        previews.request(url),
        ...Array.from({ length: 5 }, () =>
          previews.server.api('GET', paths[1], { token: ben.token, query: { url: `${url}#part` } }),
        ),
      ]);
      assert.deepEqual(
        others.map(({ body }) => body),
        Array(5).fill(first!.body),
      );
      assert.equal(web.count('/news'), 1);
      const firstHour = previews.clock.now();
      previews.clock.advance(hour);
      assert.deepEqual(await previews.preview(url), { 'og:title': '2' });
      assert.deepEqual(await previews.preview(url, { ts: firstHour }), { 'og:title': '1' });
      assert.deepEqual(await previews.preview(url, { ts: previews.clock.now() + 9 * hour }), {
        'og:title': '2',
      });
    });

    it('caches a failure for five minutes', async () => {
      const url = web.url('/missing-page');
      assert.equal(await previews.previewOrError(url), '502 M_UNKNOWN');
      assert.equal(await previews.previewOrError(url), '502 M_UNKNOWN');
      assert.equal(web.count('/missing-page'), 1);
      previews.clock.advance(5 * 60_000);
      web.set('/missing-page', head('<title>Found</title>'));
      assert.deepEqual(await previews.previewOrError(url), { 'og:title': 'Found' });
    });

    it('answers 400 M_INVALID_PARAM to URLs that are not http or https', async () => {
      for (const invalid of ['malformed', 'ftp://pages.test/', 'data:text/html,x'])
        assert.equal(await previews.previewOrError(invalid), '400 M_INVALID_PARAM');
    });

    it('deletes images and stored previews within four days', async () => {
      web.set('/brief.png', image, 'image/png');
      const url = web.set('/brief', head(og('image', '/brief.png')));
      const { 'og:image': uri } = await previews.preview(url);
      assert.equal((await previews.download(uri)).status, 200);
      previews.clock.advance(4 * 24 * hour);
      await eventually('the image to be deleted', async () => (await previews.download(uri)).status === 404);
      const files = () => filesBelow(join(previews.store, 'local'));
      await eventually('all files of images to be deleted', () => files().length === 0);
      await eventually('the stored preview to be deleted', async () => {
        await previews.preview(url, { ts: 0 });
        return web.count('/brief') === 2;
      });
    });

    it('uses the built-in list of oEmbed providers, unless it is disabled [option: oembed.disable_default_providers]', async () => {
      const url = 'https://youtu.be/abc';
      await previews.request(url);
      assert.deepEqual(
        web.lookups.filter((host) => host.includes('you')),
        ['www.youtube.com', 'youtu.be'],
      );
      web.lookups.length = 0;
      const otherServer = await previews.startOther({ oembed: { disable_default_providers: true } });
      try {
        const { token } = await otherServer.register('anna');
        const { status } = await otherServer.api('GET', paths[0], { token, query: { url } });
        assert.equal(status, 502);
        assert.deepEqual(web.lookups, ['youtu.be']);
      } finally {
        await otherServer.stop();
      }
    });
  });
}
