import { OutboundError } from './errors.ts';

const redirectStatuses = new Set([301, 302, 303, 307, 308]);

/**
 * Returns the URL that a response redirects to; `undefined` when it does not redirect. Whether its address is
 * allowed is checked on connecting, as for every request.
 * @throws OutboundError `redirect` for a URL that is not http or https, or a redirect from https to http
 */
export function redirectOf(status: number, location: string | undefined, from: URL): URL | undefined {
  if (!redirectStatuses.has(status) || location === undefined) return undefined;
  const to = URL.parse(location, from.href);
  if (to === null || !['http:', 'https:'].includes(to.protocol)) {
    throw new OutboundError('redirect', 'Redirected to a URL that is not http or https');
  }
  if (from.protocol === 'https:' && to.protocol === 'http:') {
    throw new OutboundError('redirect', 'Redirected from https to http');
  }
  return to;
}

/** Headers that must not be sent to another origin. */
const credentialHeaders = new Set(['authorization', 'cookie', 'proxy-authorization']);

/** Returns the headers of the redirected request: without credentials when the redirect leads to another origin. */
export function redirectedHeaders(
  headers: Readonly<Record<string, string>>,
  from: URL,
  to: URL,
): Readonly<Record<string, string>> {
  if (from.origin === to.origin) return headers;
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !credentialHeaders.has(name.toLowerCase())),
  );
}
