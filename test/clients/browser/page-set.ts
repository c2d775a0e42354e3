import { type FakeWeb, startFakeWeb } from '../../../src/url-previews/test/fake-web.ts';
import { testImage } from '../../support/inputs/images.ts';

/** A page, with what its preview must show. */
export interface ExpectedPreview {
  readonly url: string;
  readonly site?: string;
  readonly title?: string;
  readonly description?: RegExp;
  /** Width of the shown image in pixels. */
  readonly imageWidth?: number;
}

/** Serves pages as news sites, shops, blogs, encyclopedias and video sites write them. */
export async function startPageSet(): Promise<{ web: FakeWeb; expected: readonly ExpectedPreview[] }> {
  const web = await startFakeWeb();
  const urlOf = (path: string) => web.url(path, '127.0.0.1');
  await serveImages(web);
  serveArticles(web);
  serveVideo(web, urlOf('/cover.webp'));
  return { web, expected: expectedPreviews(urlOf) };
}

async function serveImages(web: FakeWeb): Promise<void> {
  web.set('/photo.jpg', await testImage(1_200, 630, 'jpeg'), 'image/jpeg');
  web.set('/cover.webp', await testImage(640, 480, 'webp'), 'image/webp');
  web.set('/favicon.png', await testImage(48, 48), 'image/png');
}

/** Serves pages of a newspaper, a shop, a blog in an old encoding and an encyclopedia. */
function serveArticles(web: FakeWeb): void {
  web.set(
    '/news/2026/harbour.html',
    `<!doctype html><html lang="en"><head><meta charset="utf-8">
    <title>Harbour reopens - The Daily Tide</title>
    <meta property="og:type" content="article"><meta property="og:site_name" content="The Daily Tide">
    <meta property="og:title" content="Harbour reopens after the storm">
    <meta property="og:description" content="Ferries sail again from Monday &amp; the market is back.">
    <meta property="og:image" content="/photo.jpg"><meta property="og:image:width" content="1200">
    <meta name="twitter:card" content="summary_large_image"><meta name="twitter:title" content="Not this title">
    <script type="application/ld+json">{"@context":"https://schema.org","@type":"NewsArticle","headline":"Nor this"}</script>
    </head><body><nav>Home Sport</nav><article><h1>Harbour reopens</h1><p>Long text.</p></article></body></html>`,
  );
  web.set(
    '/shop/kettle',
    `<!doctype html><html><head><title>Kettle</title>
    <script type="application/ld+json">{"@context":"https://schema.org","@graph":[{"@type":"Product","name":"Copper kettle","description":"Holds two litres.","image":["/cover.webp"]}]}</script>
    </head><body></body></html>`,
  );
  web.set(
    '/blog/nikki',
    Buffer.from(
      '<html><head><meta http-equiv="Content-Type" content="text/html; charset=shift_jis"><title>\x93\xfa\x8bL</title><link rel="icon" href="/favicon.png"></head><body><p>\x8d\xa1\x93\xfa\x82\xcd\x90\xb0\x82\xea\x81B</p></body></html>',
      'latin1',
    ),
  );
  web.set(
    '/wiki/Hearth',
    `<!doctype html><html><head><title>Hearth - Encyclopedia</title></head><body><header>Log in</header>
    <h1>Hearth</h1><p>A <b>hearth</b> is the place in a home where a fire is kept.</p><p>It is made of brick.</p>
    <img src="/photo.jpg" width="220" height="115"><footer>Licence</footer></body></html>`,
  );
}

/** Serves a page of a video site that has an oEmbed response. */
function serveVideo(web: FakeWeb, thumbnailUrl: string): void {
  web.set(
    '/watch/42',
    `<!doctype html><html><head><title>Video</title>
    <link rel="alternate" type="application/json+oembed" href="/oembed?url=42"></head><body></body></html>`,
  );
  web.set(
    '/oembed',
    JSON.stringify({
      version: '1.0',
      type: 'video',
      title: 'Not the title of the page',
      provider_name: 'Tide Video',
      thumbnail_url: thumbnailUrl,
      html: '<iframe src="https://player.example/42"></iframe>',
    }),
    'application/json',
  );
}

const expectedPreviews = (urlOf: (path: string) => string): ExpectedPreview[] => [
  {
    url: urlOf('/news/2026/harbour.html'),
    site: 'The Daily Tide',
    title: 'Harbour reopens after the storm',
    description: /^Ferries sail again from Monday & the market is back\.$/,
    imageWidth: 320,
  },
  {
    url: urlOf('/shop/kettle'),
    title: 'Copper kettle',
    description: /^Holds two litres\.$/,
    imageWidth: 320,
  },
  { url: urlOf('/blog/nikki'), title: '日記', description: /今日は晴れ/, imageWidth: 48 },
  {
    url: urlOf('/wiki/Hearth'),
    title: 'Hearth - Encyclopedia',
    description: /A hearth is the place in a home where a fire is kept\.\s+It is made of brick\./,
    imageWidth: 320,
  },
  { url: urlOf('/watch/42'), site: 'Tide Video', title: 'Video', imageWidth: 320 },
  { url: urlOf('/photo.jpg'), description: /^photo\.jpg$/, imageWidth: 320 },
];
