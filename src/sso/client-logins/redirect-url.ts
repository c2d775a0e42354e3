import { hasPlainHost } from '../../kernel/pages/index.ts';
import { LoginFailure } from '../browser-logins/login-failure.ts';

/** Schemes that would run or show something in the browser, with the rights of this server or of the local machine. */
const refusedSchemes = new Set([
  'javascript:',
  'data:',
  'vbscript:',
  'about:',
  'blob:',
  'file:',
  'filesystem:',
  'view-source:',
]);

/** Maximum characters of the URL of a client. */
const maxLength = 2000;

/**
 * Returns the URL of a client. The browser returns to it after a login.
 * @throws LoginFailure invalid_redirect_url when it is too long, not a URL, of a refused scheme, or has no plain host
 */
export function readRedirectUrl(given: string): URL {
  const url = given.length <= maxLength ? URL.parse(given) : null;
  if (url === null || refusedSchemes.has(url.protocol) || !hasPlainHost(url)) {
    throw new LoginFailure('invalid_redirect_url', 'The address to return to (redirectUrl) is not valid');
  }
  return url;
}

/** Returns the URL with a login token. Login tokens that the URL contains are replaced. */
export function withLoginToken(url: URL, token: string): string {
  const target = new URL(url);
  const others = target.search
    .slice(1)
    .split('&')
    .filter((part) => part !== '' && !/^loginToken(=|$)/.test(decoded(part)));
  target.search = [...others, `loginToken=${encodeURIComponent(token)}`].join('&');
  return target.href;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the part of a URL that users recognise a client by: its host, or the scheme of an app. */
export const shownUrl = ({ protocol, host }: URL): string =>
  protocol === 'http:' || protocol === 'https:' ? `${protocol}//${host}` : protocol;

/** Returns the source expression of a URL for Content-Security-Policy. */
export const sourceOf = (url: URL): string => (url.origin === 'null' ? url.protocol : url.origin);

/**
 * Whether users are redirected to a client without a confirmation: the URL begins with a trusted prefix, both
 * as it was given and as browsers normalize it.
 */
export const isTrustedClient = (given: string, prefixes: readonly string[]): boolean =>
  prefixes.some((prefix) => given.startsWith(prefix) && (URL.parse(given)?.href.startsWith(prefix) ?? false));
