import { hasPlainHost } from '../../kernel/pages/index.ts';

/** Hosts that mean the machine on which the client program runs. */
const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** Whether a host is `base` or a subdomain of it. */
export const isSameOrSubdomain = (host: string, base: string): boolean =>
  host === base || host.endsWith(`.${base}`);

/**
 * Parses an absolute URL. Returns `undefined` for a text that is no URL, for a URL with a fragment or with characters
 * that browsers drop or replace, and for a host that cannot be written in a Content-Security-Policy.
 */
export function parseUri(text: string): URL | undefined {
  if (/[^\x21-\x7e]|[#\\]/.test(text)) return undefined;
  const url = URL.parse(text);
  return url !== null && hasPlainHost(url) ? url : undefined;
}

/** Whether a URI uses `https` and has neither a user nor a password. */
export const isPlainHttps = ({ protocol, username, password }: URL): boolean =>
  protocol === 'https:' && username === '' && password === '';

/**
 * Whether a client may register a redirect URI.
 * Source: client-server API, "Redirect URI validation"; RFC 8252, section 7.
 * @param clientHost host of `client_uri`
 */
export function isAllowedRedirectUri(
  text: string,
  clientHost: string,
  applicationType: 'web' | 'native',
): boolean {
  const uri = parseUri(text);
  if (uri === undefined) return false;
  if (isPlainHttps(uri)) return isSameOrSubdomain(uri.hostname, clientHost);
  if (applicationType === 'web') return false;
  if (uri.protocol === 'http:') {
    // A loopback URI is registered without a port, which the client program chooses, and without a user.
    return loopbackHosts.includes(uri.hostname) && !/^http:\/\/[^/]*(:\d|@)/.test(withoutIpv6Loopback(text));
  }
  // A private-use scheme is followed by one slash at most (RFC 8252, section 7.1).
  return isOwnScheme(uri.protocol.slice(0, -1), clientHost) && !/^[^:]*:\/\//.test(text);
}

/** Whether a private-use scheme is the client's host in reverse order, or begins with it. */
function isOwnScheme(scheme: string, clientHost: string): boolean {
  const reversed = clientHost.split('.').reverse().join('.');
  return reversed.includes('.') && (scheme === reversed || scheme.startsWith(`${reversed}.`));
}

/** Replaces the IPv6 loopback address, because its colons do not begin a port. */
const withoutIpv6Loopback = (text: string) => text.replace('[::1]', 'localhost');

/**
 * Whether a requested redirect URI is a registered one. Redirect URIs to a loopback host may have any port, because
 * the client program chooses the port when it starts.
 */
export function isRegisteredRedirectUri(registered: readonly string[], requested: string): boolean {
  if (registered.includes(requested)) return true;
  const uri = parseUri(requested);
  if (uri?.protocol !== 'http:' || !loopbackHosts.includes(uri.hostname)) return false;
  const match = /^(http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])):\d{1,5}(?=$|[/?])/.exec(requested);
  return match !== null && registered.includes(match[1] + requested.slice(match[0].length));
}

/**
 * Returns the origin or scheme of a redirect URI, for the directive `form-action` of the page whose form ends in a
 * redirect to it.
 * Browsers apply this directive also to the redirect that answers the form.
 */
export function formTargetOf(redirectUri: string): string {
  const url = new URL(redirectUri);
  const { protocol, host, hostname } = url;
  // A Content-Security-Policy has no notation for IPv6 addresses.
  if (hostname.startsWith('[') || !hasPlainHost(url) || (protocol !== 'https:' && protocol !== 'http:'))
    return protocol;
  return `${protocol}//${host}`;
}
