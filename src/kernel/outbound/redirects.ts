import { OutboundError } from './errors.ts';

const redirecting = new Set([301, 302, 303, 307, 308]);

/**
 * Where a response sends the request on to; `undefined` when it does not. Whether the addresses there are allowed is
 * checked when they are connected to, as for every request.
 * @throws OutboundError `redirect` for a target that is no http or https URL, or from https to http
 */
export function redirectOf(status: number, location: string | undefined, from: URL): URL | undefined {
  if (!redirecting.has(status) || location === undefined) return undefined;
  const to = URL.parse(location, from.href);
  if (to === null || !['http:', 'https:'].includes(to.protocol)) {
    throw new OutboundError('redirect', 'Redirected to what is no address of the web');
  }
  if (from.protocol === 'https:' && to.protocol === 'http:') {
    throw new OutboundError('redirect', 'Redirected from a secure address to one that is not');
  }
  return to;
}

/** What must not be told to another host. */
const forOneHost = new Set(['authorization', 'cookie', 'proxy-authorization']);

/** Headers for the redirected request: without secrets, when it goes to somebody else. */
export function redirectedHeaders(
  headers: Readonly<Record<string, string>>,
  from: URL,
  to: URL,
): Readonly<Record<string, string>> {
  if (from.origin === to.origin) return headers;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !forOneHost.has(name.toLowerCase())));
}
