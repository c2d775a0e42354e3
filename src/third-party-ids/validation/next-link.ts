import { invalidParam } from '../../protocol/index.ts';

/** Maximum characters of a `next_link`. */
const maxLength = 2_048;

/**
 * Checks the URL that a user continues to after the validation.
 * @param domains `next_link_domain_whitelist`: the allowed hosts; null allows all
 * @throws MatrixError M_INVALID_PARAM
 */
export function readNextLink(
  given: string | undefined,
  domains: readonly string[] | null,
): string | undefined {
  if (given === undefined || given === '') return undefined;
  const url = given.length <= maxLength ? URL.parse(given) : null;
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw invalidParam('next_link must be an http or https URL');
  // Credentials make a host look like another one.
  if (url.username !== '' || url.password !== '') throw invalidParam('next_link must not have credentials');
  if (domains !== null && !domains.some((domain) => domain.toLowerCase() === url.hostname))
    throw invalidParam('The domain of next_link is not allowed on this server');
  return url.href;
}
