import { canonicalAddress } from '../identity-servers/index.ts';
import { invalidParam, MatrixError } from '../protocol/index.ts';

/** The kinds of addresses: mail addresses, and phone numbers (`msisdn`). */
export type Medium = 'email' | 'msisdn';

/** Characters that separate or quote addresses in the headers of mails. */
const headerSyntax = /[<>()[\]\\,;:"]/;

/**
 * Returns a mail address in canonical form.
 * @throws MatrixError M_INVALID_PARAM
 */
export function readMailAddress(given: string): string {
  const address = canonicalAddress('email', given);
  if (address === undefined || headerSyntax.test(address) || /^\.|\.@|@\.|\.$/.test(address))
    throw invalidParam('This is not a valid mail address');
  return address;
}

/**
 * Returns a phone number in canonical form: all digits, with the country code.
 * @param country two letters, as in ISO 3166; only for numbers without `+` and country code
 * @returns `undefined` when the number is not valid
 */
export async function readPhoneNumber(country: string, number: string): Promise<string | undefined> {
  if (number.length > 50 || !/^[A-Za-z]{2}$/.test(country)) return undefined;
  const { parsePhoneNumberFromString } = await import('libphonenumber-js/min');
  const parsed = parsePhoneNumberFromString(number, country.toUpperCase() as 'GB');
  return parsed?.isPossible() ? parsed.number.slice(1) : undefined;
}

/** The error for an address that an account has already. */
export const addressInUse = () =>
  new MatrixError(400, 'M_THREEPID_IN_USE', 'This address belongs to an account already');

/** The error for an address that the option `allowed_local_3pids` does not allow. */
export const addressDenied = () =>
  new MatrixError(403, 'M_THREEPID_DENIED', 'This address is not allowed on this server');
