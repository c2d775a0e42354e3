import { Reply } from './routing/route.ts';

/**
 * Sends the browser to another address: 302 by default, 303 to make it fetch with GET after a form, 307 or 308 to repeat
 * the request there. Whether the address may be gone to is for the caller to check.
 * @param location absolute or relative URL; what cannot be in a header (line breaks, spaces, other scripts) is
 * percent-encoded
 */
export function redirect(
  location: string,
  status: 302 | 303 | 307 | 308 = 302,
  headers: Reply['headers'] = {},
): Reply {
  return new Reply(status, undefined, { ...headers, Location: headerSafe(location) });
}

const headerSafe = (url: string) => url.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent);
