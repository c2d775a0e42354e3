import { Reply } from './routing/route.ts';

/**
 * Redirects the browser: 302 by default, 303 to fetch the next page with GET after a form, 307 or 308 to
 * repeat the request with its method and body. The caller checks whether the target is allowed.
 * @param location absolute or relative URL; characters that are not allowed in a header (line breaks, spaces,
 * non-ASCII) are percent-encoded
 */
export function redirect(
  location: string,
  status: 302 | 303 | 307 | 308 = 302,
  headers: Reply['headers'] = {},
): Reply {
  return new Reply(status, undefined, { ...headers, Location: headerSafe(location) });
}

const headerSafe = (url: string) => url.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent);
