import { type Cookies, parseCookie, stringifySetCookie } from 'cookie';

export interface CookieOptions {
  /**
   * The cookie is sent for paths below this one; for all paths if absent. To a browser, the spellings of a path with
   * `/_matrix` and with `/_proto` are different paths.
   */
  readonly path?: string;
  /** Lifetime in seconds; until the browser is closed if absent. */
  readonly maxAge?: number;
  /**
   * Which requests from other sites carry the cookie: `lax` (the default) only links, `strict` none, `none`
   * all. Browsers accept `none` over TLS only, so it becomes `lax` without TLS.
   */
  readonly sameSite?: 'lax' | 'strict' | 'none';
}

/** The part of a request that decides whether a cookie is `Secure`. */
interface Connection {
  readonly isSecure: boolean;
}

/**
 * Returns the value of a `Set-Cookie` header. Scripts cannot read the cookie. If the request came over TLS,
 * the cookie is sent over TLS only.
 * @throws TypeError for a name or path that is not allowed in the header
 */
export function setCookie(
  { isSecure }: Connection,
  name: string,
  value: string,
  { path = '/', maxAge, sameSite = 'lax' }: CookieOptions = {},
): string {
  return stringifySetCookie({
    name,
    value,
    path,
    httpOnly: true,
    secure: isSecure,
    sameSite: sameSite === 'none' && !isSecure ? 'lax' : sameSite,
    ...(maxAge !== undefined && { maxAge }),
  });
}

/**
 * Returns the value of a `Set-Cookie` header that deletes a cookie; `path` must be the path of the cookie.
 */
export function clearCookie(connection: Connection, name: string, options: CookieOptions = {}): string {
  return setCookie(connection, name, '', { ...options, maxAge: 0 });
}

/**
 * Parses the `Cookie` header of a request. The result has no prototype. If several cookies have the same name, the
 * result contains the first of them.
 */
export function parseCookies(header: string | undefined): Readonly<Cookies> {
  return parseCookie(header ?? '');
}
