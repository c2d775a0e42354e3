import { setCookie } from '../../kernel/http/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import type { BrowserRequest } from './continuation.ts';

/** Over TLS the prefix keeps other hosts of the same domain from setting the cookie. */
const nameOf = ({ isSecure }: Pick<BrowserRequest, 'isSecure'>) =>
  isSecure ? '__Host-hearth_sso' : 'hearth_sso';

const valueForm = /^[A-Za-z0-9]{32}$/;

/** Seconds. */
const maxAge = 3600;

/** Returns the value by which a browser is recognised during a login; `undefined` for one that has begun none. */
export function browserOf(request: Pick<BrowserRequest, 'isSecure' | 'cookies'>): string | undefined {
  const value = request.cookies[nameOf(request)];
  return value !== undefined && valueForm.test(value) ? value : undefined;
}

/** Returns the value of a browser, which stays the same in several tabs. */
export const browserOrNew = (request: BrowserRequest, randomness: Randomness): string =>
  browserOf(request) ?? randomString(randomness, 32);

/**
 * Returns the `Set-Cookie` header that binds logins to a browser.
 * @param fromOtherSites whether requests that another site sends must carry it, for providers that respond with a form
 */
export const browserCookie = (request: BrowserRequest, value: string, fromOtherSites: boolean): string =>
  setCookie(request, nameOf(request), value, { maxAge, sameSite: fromOtherSites ? 'none' : 'lax' });
