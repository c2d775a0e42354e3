import { setCookie } from '../../kernel/http/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import type { BrowserRequest } from './continuation.ts';

/**
 * Returns the name of the cookie. Over TLS its prefix keeps other hosts of the same domain from setting it.
 */
const nameOf = ({ isSecure }: Pick<BrowserRequest, 'isSecure'>) =>
  isSecure ? '__Host-hearth_sso' : 'hearth_sso';

const valueForm = /^[A-Za-z0-9]{32}$/;

/** Lifetime of the cookie in seconds. */
const maxAge = 3600;

/**
 * Returns the cookie value that identifies the browser during a login; `undefined` when the browser has begun
 * no login.
 */
export function browserOf(request: Pick<BrowserRequest, 'isSecure' | 'cookies'>): string | undefined {
  const value = request.cookies[nameOf(request)];
  return value !== undefined && valueForm.test(value) ? value : undefined;
}

/** Returns the cookie value of the browser, or a new value. All tabs of a browser share the value. */
export const browserOrNew = (request: BrowserRequest, randomness: Randomness): string =>
  browserOf(request) ?? randomString(randomness, 32);

/**
 * Returns the `Set-Cookie` header that binds logins to a browser.
 * @param fromOtherSites whether browsers send the cookie with requests from other sites; needed for a provider that
 * responds with a form
 */
export const browserCookie = (request: BrowserRequest, value: string, fromOtherSites: boolean): string =>
  setCookie(request, nameOf(request), value, { maxAge, sameSite: fromOtherSites ? 'none' : 'lax' });
