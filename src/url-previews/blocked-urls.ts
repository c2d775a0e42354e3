import { RE2JS } from 're2js';
import type { UrlPreviewsConfig } from './config.ts';

type Entry = UrlPreviewsConfig['url_preview_url_blacklist'][number];

/** The patterns of one entry, each with the name of the part of the URL that it must match. */
type CompiledEntry = readonly (readonly [part: keyof Entry, pattern: RE2JS])[];

/** Decides which URLs are not fetched: `url_preview_url_blacklist`. */
export class BlockedUrls {
  readonly #entries: readonly CompiledEntry[];

  constructor(entries: readonly Entry[]) {
    this.#entries = entries
      .map((entry) =>
        Object.entries(entry)
          .filter((part): part is [keyof Entry, string] => typeof part[1] === 'string')
          .map(([name, pattern]) => [name, compilePattern(pattern)] as const),
      )
      .filter((entry) => entry.length > 0);
  }

  /**
   * Reports whether a URL matches all patterns of at least one entry. A URL without a user name matches no pattern for
   * user names; the same holds for passwords and ports.
   */
  has(url: URL): boolean {
    const parts = partsOf(url);
    return this.#entries.some((entry) =>
      entry.every(([name, pattern]) => {
        const part = parts[name];
        return part !== undefined && pattern.matcher(part).lookingAt();
      }),
    );
  }
}

function partsOf(url: URL): Record<keyof Entry, string | undefined> {
  const { username, password, host, hostname, port } = url;
  const user = username === '' ? '' : `${username}${password && `:${password}`}@`;
  return {
    username: username || undefined,
    password: password || undefined,
    netloc: user + host,
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port: port || undefined,
    scheme: url.protocol.slice(0, -1),
    path: url.pathname,
    query: url.search.slice(1),
  };
}

/** Compiles a regular expression if the pattern begins with `^`, or else a glob pattern. */
const compilePattern = (pattern: string) =>
  pattern.startsWith('^')
    ? RE2JS.compile(pattern)
    : RE2JS.compile(`${globToRegularExpression(pattern)}$`, RE2JS.DOTALL);

/** Translates a glob pattern with `*`, `?` and `[…]` to a regular expression; an unclosed bracket stands for itself. */
function globToRegularExpression(pattern: string): string {
  return pattern.replace(
    /\*|\?|\[(!?)(\]?[^\]]*)\]|[^*?[]+|\[/g,
    (part, negation: string | undefined, characters?: string) => {
      if (part === '*') return '.*';
      if (part === '?') return '.';
      if (characters === undefined || characters === '') return RE2JS.quote(part);
      return `[${negation ? '^' : ''}${characters.replace(/[\\[\]^]/g, '\\$&')}]`;
    },
  );
}
