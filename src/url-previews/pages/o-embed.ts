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
  const members = /xml/i.test(contentType.split(';', 1)[0]!) ? membersOfXml(text) : membersOfJson(text);
  const memberOf = (name: string) => members.get(name) || undefined;
  const html = memberOf('html');
  const embedded = html === undefined ? undefined : readPage(`<body>${html}`);
  const type = memberOf('type');
  const title = memberOf('title');
  const video = type === 'video' ? webUrl(embedded?.frames[0], url) : undefined;
  const embeddedResult = embedded && describePage(embedded, url);
  const properties = {
    ...(title !== undefined && { 'og:title': plain(title) }),
    ...(memberOf('provider_name') !== undefined && { 'og:site_name': plain(memberOf('provider_name')!) }),
    ...(type === 'rich' &&
      embeddedResult?.properties['og:description'] !== undefined && {
        'og:description': embeddedResult.properties['og:description'],
      }),
    ...(type === 'video' && { 'og:type': 'video.other' }),
    ...(type === 'link' && { 'og:type': 'website' }),
    ...(video !== undefined && { 'og:video': video }),
  };
  const images = [
    type === 'photo' ? webUrl(memberOf('url'), url) : undefined,
    webUrl(memberOf('thumbnail_url'), url),
    ...(type === 'rich' ? (embeddedResult?.images ?? []) : []),
  ];
  return {
    properties,
    images: images.filter((image) => image !== undefined),
    author: memberOf('author_name'),
  };
}

/** Maximum number of characters of a value that are read. */
const maxValue = 65_536;

function membersOfJson(text: string): Map<string, string> {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) throw new TypeError('Not an object');
  const members = Object.entries(value).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return new Map(members.map(([name, member]) => [name, member.slice(0, maxValue)]));
}

/** Returns the texts of the children of the root element, by name. */
function membersOfXml(text: string): Map<string, string> {
  const members = new Map<string, string>();
  const path: string[] = [];
  const parser = new Parser(
    {
      onopentag: (name) => void path.push(name),
      onclosetag: () => void path.pop(),
      ontext(value) {
        const [root, member] = path;
        if (path.length !== 2 || root !== 'oembed' || member === undefined) return;
        const earlierText = members.get(member) ?? '';
        if (earlierText.length < maxValue && members.size < 50)
          members.set(member, earlierText + value.slice(0, maxValue));
      },
    },
    { xmlMode: true },
  );
  parser.end(text);
  if (members.size === 0) throw new TypeError('Not an oEmbed response');
  return members;
}
