import { toDeclaredSpelling } from '../../kernel/http/index.ts';
import { forbidden } from '../../protocol/index.ts';
import { pagePaths } from '../endpoints.ts';
import type { BrowserSession } from './browser-sessions.ts';

/** Pages to which a user may return after signing in. */
const returnable: readonly string[] = [pagePaths.authorization, pagePaths.link, pagePaths.account];

/** Maximum characters of a URL to return to. */
const maxLength = 8_192;

/**
 * Returns the page that a user returns to after signing in: `wanted` if it is one of `returnable`, otherwise the
 * account page. Links to sign in therefore cannot lead to other sites.
 */
export function returnPage(wanted: string): string {
  const account = '/_synapse/client/account';
  if (wanted.length > maxLength || !/^\/[\w/.-]+(\?[\x21\x23-\x5b\x5d-\x7e]*)?$/.test(wanted)) return account;
  const path = toDeclaredSpelling(wanted).split('?', 1)[0];
  return path !== undefined && returnable.includes(path) ? wanted : account;
}

/** @throws MatrixError M_FORBIDDEN when a form was not made for this session */
export function requireFormToken(session: BrowserSession, formToken: string): void {
  if (formToken !== session.formToken) {
    throw forbidden(
      'This form is outdated, or was sent from another site. Go back, reload the page and try again',
    );
  }
}
