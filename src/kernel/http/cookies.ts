import { type Cookies, parseCookie, stringifySetCookie } from 'cookie';

export interface CookieOptions {
  /** Paths below it get the cookie; all paths if absent. Both spellings of a path count separately for browsers. */
  readonly path?: string;
  /** In seconds; until the browser is closed if absent. */
  readonly maxAge?: number;
  /**
   * Whether requests that come from other sites carry the cookie: `lax` (the default) links only, `strict` none,
   * `none` all, which browsers allow over TLS only: without TLS it becomes `lax`.
   */
  readonly sameSite?: 'lax' | 'strict' | 'none';
}

/** Whether the client's own connection uses TLS: a request of a handler. */
interface Connection {
  readonly isSecure: boolean;
}

/**
 * The value of a `Set-Cookie` header. Scripts cannot read the cookie, and over TLS it is never sent without TLS.
 * @throws TypeError for a name or path that cannot be in a header
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

/** The value of a `Set-Cookie` header that deletes a cookie; the path is that with which the cookie was set. */
export function clearCookie(connection: Connection, name: string, options: CookieOptions = {}): string {
  return setCookie(connection, name, '', { ...options, maxAge: 0 });
}

/** The cookies of a request, as an object without prototype. Of several with one name the first one counts. */
export function parseCookies(header: string | undefined): Readonly<Cookies> {
  return parseCookie(header ?? '');
}
