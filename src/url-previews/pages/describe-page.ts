import { describeJsonLd } from './json-ld.ts';
import type { PageResult } from './page-task.ts';
import type { PageElements } from './read-page.ts';
import { summarize } from './summarize.ts';
import { webUrl } from './web-url.ts';

/** Number of pixels (width times height) below which an image counts as a decoration. */
const minImageArea = 100;

/** Maximum number of images that are tried for a preview. */
const maxImages = 3;

/**
 * Composes the preview of a page. Open Graph takes precedence over Twitter cards, Twitter cards over JSON-LD, and
 * JSON-LD over the elements of the page.
 */
export function describePage(page: PageElements, url: string): PageResult {
  const base = page.base === undefined ? url : (URL.parse(page.base, url)?.href ?? url);
  const jsonLd = describeJsonLd(page.jsonLd);
  const properties: Record<string, string> = {
    ...withoutEmpty({
      'og:title': page.title || page.headings[0],
      'og:description': page.metas.get('description') || summarize(page.paragraphs),
    }),
    ...withoutEmpty({
      'og:title': jsonLd.title,
      'og:description': jsonLd.description,
      'og:site_name': jsonLd.siteName,
    }),
    ...twitterCard(page.metas),
    ...openGraph(page.metas),
  };
  const candidates = [
    page.metas.get('og:image:secure_url'),
    page.metas.get('og:image'),
    page.metas.get('og:image:url'),
    page.metas.get('twitter:image'),
    page.metas.get('twitter:image:src'),
    jsonLd.image,
    page.metas.get('itemprop image'),
    hrefOf(page, 'image_src'),
    pictureOf(page, base),
    hrefOf(page, 'apple-touch-icon'),
    hrefOf(page, 'icon'),
  ];
  const images = candidates.map((image) => webUrl(image, base)).filter((image) => image !== undefined);
  return {
    properties,
    images: [...new Set(images)].slice(0, maxImages),
    oEmbedUrl: webUrl(page.links.find(isOEmbed)?.href, base),
  };
}

/**
 * Reports whether a property describes the image. These properties are set from this server's copy of the image
 * instead. Source: https://ogp.me
 */
const describesImage = (name: string) =>
  name === 'og:image' || /^og:image:(url|secure_url|type|width|height)$/.test(name);

function openGraph(metas: PageElements['metas']): Record<string, string> {
  return Object.fromEntries(
    [...metas].filter(([name, value]) => name.startsWith('og:') && !describesImage(name) && value !== ''),
  );
}

/** Returns the Twitter card of a page. Source: https://developer.x.com/en/docs/x-for-websites/cards/overview/markup */
function twitterCard(metas: PageElements['metas']): Record<string, string> {
  return withoutEmpty({
    'og:title': metas.get('twitter:title'),
    'og:description': metas.get('twitter:description'),
    'og:site_name': metas.get('twitter:site'),
  });
}

/** Returns an object without the fields that are missing or empty. */
function withoutEmpty(values: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, string] => Boolean(entry[1])),
  );
}

/**
 * Returns the largest image of a page; where none has a size, the first one. Decorations and `data:` URLs are left out.
 */
function pictureOf({ images }: PageElements, base: string): string | undefined {
  const onWeb = images.filter(({ src }) => webUrl(src, base) !== undefined);
  const sized = onWeb.flatMap(({ src, area = 0 }) => (area >= minImageArea ? [{ src, area }] : []));
  const largest = sized.sort((a, b) => b.area - a.area)[0];
  return (largest ?? onWeb.find(({ area }) => area === undefined))?.src;
}

const hrefOf = ({ links }: PageElements, rel: string) =>
  links.find((link) => link.rel.split(/\s+/).includes(rel))?.href;

/** Whether a link leads to oEmbed data. Source: oEmbed specification, 4 "Discovery". */
const isOEmbed = ({ rel, type }: PageElements['links'][number]) =>
  rel.split(/\s+/).includes('alternate') &&
  /^(application\/json|text\/xml|application\/xml)\+oembed$/.test(type);
