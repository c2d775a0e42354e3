import { Parser } from 'htmlparser2';
import { describePage } from './describe-page.ts';
import type { PageResult } from './page-task.ts';
import { plain, readPage } from './read-page.ts';
import { webUrl } from './web-url.ts';

/** Returns whether an oEmbed response may have this content type. Source: oEmbed specification, 2.3. */
export const isOEmbedType = (contentType: string) =>
  /^\s*(application\/json(\+oembed)?|text\/xml(\+oembed)?|application\/xml(\+oembed)?|text\/javascript)\s*(;|$)/i.test(
    contentType,
  );

/** Reads an oEmbed response. @throws Error when the text is not an oEmbed response */
export function readOEmbed(text: string, contentType: string, url: string): PageResult {
  const fields = /xml/i.test(contentType.split(';', 1)[0]!) ? fieldsOfXml(text) : fieldsOfJson(text);
  const fieldOf = (name: string) => fields.get(name) || undefined;
  const html = fieldOf('html');
  const embedded = html === undefined ? undefined : readPage(`<body>${html}`);
  const type = fieldOf('type');
  const title = fieldOf('title');
  const video = type === 'video' ? webUrl(embedded?.frames[0], url) : undefined;
  const embeddedResult = embedded && describePage(embedded, url);
  const properties = {
    ...(title !== undefined && { 'og:title': plain(title) }),
    ...(fieldOf('provider_name') !== undefined && { 'og:site_name': plain(fieldOf('provider_name')!) }),
    ...(type === 'rich' &&
      embeddedResult?.properties['og:description'] !== undefined && {
        'og:description': embeddedResult.properties['og:description'],
      }),
    ...(type === 'video' && { 'og:type': 'video.other' }),
    ...(type === 'link' && { 'og:type': 'website' }),
    ...(video !== undefined && { 'og:video': video }),
  };
  const images = [
    type === 'photo' ? webUrl(fieldOf('url'), url) : undefined,
    webUrl(fieldOf('thumbnail_url'), url),
    ...(type === 'rich' ? (embeddedResult?.images ?? []) : []),
  ];
  return {
    properties,
    images: images.filter((image) => image !== undefined),
    author: fieldOf('author_name'),
  };
}

/** Maximum number of characters of a value that are read. */
const maxValue = 65_536;

function fieldsOfJson(text: string): Map<string, string> {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) throw new TypeError('Not an object');
  const fields = Object.entries(value).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return new Map(fields.map(([name, field]) => [name, field.slice(0, maxValue)]));
}

/** Returns the texts of the children of the root element, by name. */
function fieldsOfXml(text: string): Map<string, string> {
  const fields = new Map<string, string>();
  const path: string[] = [];
  const parser = new Parser(
    {
      onopentag: (name) => void path.push(name),
      onclosetag: () => void path.pop(),
      ontext(value) {
        const [root, field] = path;
        if (path.length !== 2 || root !== 'oembed' || field === undefined) return;
        const earlierText = fields.get(field) ?? '';
        if (earlierText.length < maxValue && fields.size < 50)
          fields.set(field, earlierText + value.slice(0, maxValue));
      },
    },
    { xmlMode: true },
  );
  parser.end(text);
  if (fields.size === 0) throw new TypeError('Not an oEmbed response');
  return fields;
}
