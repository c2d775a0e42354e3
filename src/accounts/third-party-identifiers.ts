import type { AnyWriter } from '../kernel/database/index.ts';
import { isJsonObject, type JsonValue } from '../protocol/index.ts';

/** An address whose owner has proven that messages to it arrive. */
export interface ValidatedAddress {
  readonly medium: 'email' | 'msisdn';
  /** In canonical form. */
  readonly address: string;
  /** Milliseconds since the epoch. */
  readonly validatedAt: number;
  /** The purpose of the validation: `registration`, `password_reset` or `add_threepid`. */
  readonly purpose?: string | undefined;
}

/** What the slice `accounts` needs about mail addresses and phone numbers; provided by `third-party-ids`. */
export interface ThirdPartyIdentifiers {
  /** Stages of interactive authentication that let a user who is not logged in reset the password. */
  resetStages(): readonly string[];
  /** Returns the user id of the account with an address in any spelling. */
  findUser(medium: string, address: string): Promise<string | undefined>;
  /**
   * Returns a phone number in canonical form: all digits with the country code; `undefined` when it is invalid.
   * @param country two letters, as in ISO 3166
   */
  phoneNumber(country: string, number: string): Promise<string | undefined>;
  /** Whether accounts may have the address: the option `allowed_local_3pids`. */
  isAllowed(medium: string, address: string): boolean;
  /**
   * Checks rules besides `isAllowed` for an address that is about to be added to an account. Absent: there are no other
   * rules.
   * @throws MatrixError
   */
  readonly checkUse?:
    | ((medium: string, address: string, isRegistration: boolean) => Promise<void>)
    | undefined;
  /**
   * Adds an address to an account inside the caller's transaction, and ends the validations of the address, so that none
   * can be used again.
   * @throws MatrixError M_THREEPID_IN_USE when another account has the address, M_THREEPID_DENIED
   */
  bind(writer: AnyWriter, userId: string, address: ValidatedAddress): Promise<void>;
  /** Ends the validations of an address inside the caller's transaction, so that none can be used again. */
  endValidations(writer: AnyWriter, address: ValidatedAddress): Promise<void>;
  /**
   * Requests that identity servers forget the addresses that the user has published there.
   * @param server the identity server that receives the request; by default all servers where the user is known to have
   * published addresses
   * @returns whether all addresses have been forgotten
   */
  unpublishAll(userId: string, server: string | undefined): Promise<boolean>;
}

/** A server without third-party identifiers. */
export const noThirdPartyIdentifiers: ThirdPartyIdentifiers = {
  resetStages: () => [],
  findUser: async () => undefined,
  phoneNumber: async () => undefined,
  isAllowed: () => false,
  bind: async () => undefined,
  endValidations: async () => undefined,
  unpublishAll: async () => true,
};

/**
 * Returns the addresses that stages of interactive authentication have validated. The result of such a stage is
 * `{medium, address, validated_at}`, with `purpose` where it is known; other results are ignored.
 */
export function validatedAddresses(completed: ReadonlyMap<string, JsonValue>): ValidatedAddress[] {
  return [...completed.values()].flatMap((result) => {
    if (!isJsonObject(result)) return [];
    const { medium, address, validated_at: validatedAt, purpose } = result;
    if ((medium !== 'email' && medium !== 'msisdn') || typeof address !== 'string') return [];
    if (typeof validatedAt !== 'number') return [];
    return [{ medium, address, validatedAt, purpose: typeof purpose === 'string' ? purpose : undefined }];
  });
}
