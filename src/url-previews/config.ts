import {
  boolean,
  cidr,
  globOrRegularExpression,
  list,
  nullable,
  object,
  option,
  type SectionType,
  section,
  size,
  string,
} from '../kernel/config/index.ts';

const component = (name: string) =>
  option(nullable(globOrRegularExpression()), {
    description: `A pattern for the ${name} of a URL. Null matches any.`,
    default: null,
  });

const blockedUrl = object({
  username: component('user name'),
  netloc: component('authority (user name and password, if any, host and port)'),
  scheme: component('scheme'),
  path: component('path'),
  password: component('password'),
  hostname: component('host (without the port)'),
  port: component('port'),
  query: component('query'),
});

const options = {
  url_preview_enabled: option(boolean(), {
    description: 'Lets clients request URL previews. It needs `url_preview_ip_range_blacklist`.',
    default: false,
  }),
  url_preview_ip_range_blacklist: option(nullable(list(cidr())), {
    description:
      'Addresses that previews must not fetch. There is no built-in list; the default of `ip_range_blacklist` is a good one. `0.0.0.0` and `::` are always refused. Behind an HTTP proxy the list has no effect.',
    default: null,
  }),
  url_preview_ip_range_whitelist: option(list(cidr()), {
    description: 'Exceptions from `url_preview_ip_range_blacklist`.',
    default: [],
  }),
  url_preview_url_blacklist: option(list(blockedUrl), {
    description:
      'URLs that previews must not fetch: a URL is refused if it matches every given part of an entry. A part is a glob pattern, or a regular expression if it begins with `^`. This is a convenience, not a protection.',
    default: [],
  }),
  max_spider_size: option(size(), {
    description: 'The maximum size of a page that is fetched for a preview.',
    default: '10M',
    unit: 'bytes',
  }),
  url_preview_accept_language: option(
    list(
      string({
        pattern:
          '^(\\*|[A-Za-z0-9]{1,8}(-[A-Za-z0-9]{1,8})*)(\\s*;\\s*q=(0(\\.[0-9]{0,3})?|1(\\.0{0,3})?))?$',
        allowed: 'a language like en, en-GB;q=0.8 or *;q=0.1',
      }),
    ),
    {
      description:
        'The languages in which pages are requested, in the format of the header `Accept-Language`.',
      default: ['en'],
    },
  ),
  oembed: option(
    object({
      disable_default_providers: option(boolean(), {
        description: 'Ignores the built-in list of sites that offer oEmbed.',
        default: false,
      }),
      additional_providers: option(list(string({ minLength: 1 })), {
        description:
          'Files with further sites that offer oEmbed, in the format of https://oembed.com/providers.json.',
        default: [],
      }),
    }),
    { description: 'Previews by oEmbed.' },
  ),
};

/** URL previews. */
export const urlPreviewsSection = section({
  title: 'URL previews',
  options,
  rules: [
    ({ url_preview_url_blacklist: entries }, view) => {
      for (const [index, entry] of entries.entries()) {
        if (Object.values(entry).every((pattern) => pattern === null))
          view.warn(`url_preview_url_blacklist[${index}]`, 'has no pattern, so it refuses no URL');
      }
    },
    ({ url_preview_enabled, url_preview_ip_range_blacklist }, view) => {
      if (url_preview_enabled && url_preview_ip_range_blacklist === null) {
        view.error(
          'url_preview_enabled',
          'needs url_preview_ip_range_blacklist, or users could make this server request addresses that only it can reach; the default of ip_range_blacklist is a good list',
        );
      }
    },
  ],
});

export type UrlPreviewsConfig = SectionType<typeof urlPreviewsSection>;
