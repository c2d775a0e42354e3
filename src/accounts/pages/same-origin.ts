import { forbidden } from '../../protocol/index.ts';

/**
 * Refuses forms that a page of another origin sends, so that no site can create or choose an account for a visitor.
 * Browsers name the origin of a request in the header `Sec-Fetch-Site`. Requests without this header are accepted.
 * @throws MatrixError M_FORBIDDEN
 */
export function requireSameOrigin(headers: Readonly<Record<string, string | string[] | undefined>>): void {
  const site = headers['sec-fetch-site'];
  if (site === 'cross-site' || site === 'same-site') {
    throw forbidden('This form was sent from a page of another origin');
  }
}
