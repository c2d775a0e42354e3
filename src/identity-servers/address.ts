import { invalidParam, isServerName } from '../protocol/index.ts';

/** An address or phone number of somebody, and the identity server that may know whose it is. */
export interface ThirdPartyAddress {
  /** For instance `email` or `msisdn`. */
  readonly medium: string;
  /** In the form in which identity servers know it. */
  readonly address: string;
  /** Host name, with a port where it is not 443. */
  readonly server: string;
  /** What the user has to show there. */
  readonly accessToken: string;
}

/** Characters of an address. */
const longest = 500;

/**
 * Reads an address as clients give it.
 * Source: appendices, "3PID Types".
 * @throws MatrixError M_INVALID_PARAM
 */
export function readAddress(given: {
  readonly medium: string;
  readonly address: string;
  readonly id_server: string;
  readonly id_access_token: string;
}): ThirdPartyAddress {
  const { medium, id_server: server, id_access_token: accessToken } = given;
  if (!isServerName(server)) throw invalidParam('id_server is no server name');
  if (!/^[\x21-\x7e]{1,2048}$/.test(accessToken)) throw invalidParam('id_access_token is no access token');
  if (!/^[a-z0-9._-]{1,64}$/.test(medium)) throw invalidParam('medium is no kind of address');
  const address = canonicalAddress(medium, given.address);
  if (address === undefined) throw invalidParam(`address is none of the kind ${medium}`);
  return { medium, address, server, accessToken };
}

function canonicalAddress(medium: string, given: string): string | undefined {
  // Spaces separate the parts of what is hashed, so they must not be in an address.
  if (given.length > longest || !/^\P{C}+$/u.test(given)) return undefined;
  if (medium === 'email') {
    const address = given.trim().toLowerCase();
    return /^[^@\s]+@[^@\s]+$/.test(address) ? address : undefined;
  }
  if (medium === 'msisdn') {
    const digits = given.replaceAll(/[+\s().-]/g, '');
    return /^[1-9]\d{4,14}$/.test(digits) ? digits : undefined;
  }
  return /\s/.test(given) ? undefined : given;
}
