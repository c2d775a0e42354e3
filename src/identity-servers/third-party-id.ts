import { invalidParam, isServerName } from '../protocol/index.ts';

/** A third-party identifier, and the identity server that may know its owner. */
export interface ThirdPartyId {
  /** For example `email` or `msisdn`. */
  readonly medium: string;
  /** In canonical form. */
  readonly address: string;
  /** Host name of the identity server, with a port if it is not 443. */
  readonly server: string;
  /** The access token of the user for the identity server. */
  readonly accessToken: string;
}

/** Maximum characters of an address. */
const maxLength = 500;

/**
 * Reads a third-party identifier from a client.
 * Source: appendices, "3PID Types".
 * @throws MatrixError M_INVALID_PARAM
 */
export function readThirdPartyId(given: {
  readonly medium: string;
  readonly address: string;
  readonly id_server: string;
  readonly id_access_token: string;
}): ThirdPartyId {
  const { medium, id_server: server, id_access_token: accessToken } = given;
  if (!isServerName(server)) throw invalidParam('id_server is not a server name');
  readAccessToken(accessToken);
  if (!/^[a-z0-9._-]{1,64}$/.test(medium)) throw invalidParam('medium is invalid');
  const address = canonicalAddress(medium, given.address);
  if (address === undefined) throw invalidParam(`address is not valid for the medium ${medium}`);
  return { medium, address, server, accessToken };
}

/** Returns the given access token. @throws MatrixError M_INVALID_PARAM when it cannot be sent in a header */
export function readAccessToken(given: string): string {
  if (!/^[\x21-\x7e]{1,2048}$/.test(given)) throw invalidParam('id_access_token is not an access token');
  return given;
}

/**
 * Returns an address in canonical form; `undefined` when it is not valid for the medium. An address must not contain
 * spaces, because they separate the parts of the text that is hashed for a lookup.
 */
export function canonicalAddress(medium: string, given: string): string | undefined {
  if (given.length > maxLength || !/^\P{C}+$/u.test(given)) return undefined;
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
