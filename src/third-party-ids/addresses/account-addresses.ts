import type { ThirdPartyIdentifiers, ValidatedAddress } from '../../accounts/index.ts';
import { canonicalAddress } from '../../identity-servers/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import {
  type AnyWriter,
  afterCommit,
  type Database,
  type Writer,
  writerFor,
} from '../../kernel/database/index.ts';
import { invalidParam } from '../../protocol/index.ts';
import { addressDenied, addressInUse, readPhoneNumber } from '../address.ts';
import type { PublishedAddresses } from '../publication/published-addresses.ts';
import type { ThirdPartyIdTables } from '../tables.ts';
import { deleteValidationsOf } from '../validation/session-store.ts';
import { type AddressRow, deleteAddress, findOwner, insertAddress, listAddresses } from './address-store.ts';
import type { AllowedAddresses } from './allowed-addresses.ts';

export interface AccountAddressesDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly allowed: AllowedAddresses;
  readonly published: PublishedAddresses;
  /** Stages by which a password can be reset. */
  readonly resetStages: readonly string[];
  readonly extensions?: AddressExtensions | undefined;
}

/** What modules supply: rules for addresses, and receivers of changes of the addresses of accounts. */
export interface AddressExtensions {
  readonly checkUse?: ThirdPartyIdentifiers['checkUse'];
  /** Receives each address that is added to or removed from an account, after the change is stored. */
  readonly changed?:
    | ((change: { userId: string; medium: string; address: string; isAdded: boolean }) => void)
    | undefined;
}

/** Runs in the transaction that changes the addresses of an account. */
export type AddressHook = (
  writer: AnyWriter,
  userId: string,
  address: { readonly medium: string; readonly address: string },
) => Promise<void>;

/** The mail addresses and phone numbers of accounts. */
export class AccountAddresses implements ThirdPartyIdentifiers {
  readonly #deps: AccountAddressesDeps;
  #removedHook: AddressHook = async () => undefined;
  #addedToNewUserHook: AddressHook = async () => undefined;

  constructor(deps: AccountAddressesDeps) {
    this.#deps = deps;
  }

  get checkUse(): ThirdPartyIdentifiers['checkUse'] {
    return this.#deps.extensions?.checkUse;
  }

  /** Sets the hook that runs in the transaction that removes an address from an account. */
  onRemoved(hook: AddressHook): void {
    this.#removedHook = hook;
  }

  /** Sets the hook that runs in the transaction when an administrator adds an address to a new account. */
  onAddedToNewUser(hook: AddressHook): void {
    this.#addedToNewUserHook = hook;
  }

  resetStages(): readonly string[] {
    return this.#deps.resetStages;
  }

  async findUser(medium: string, address: string): Promise<string | undefined> {
    const known = /^[a-z]{1,16}$/.test(medium) ? canonicalAddress(medium, address) : undefined;
    // An address that is not valid is looked up too, so that it takes as long as a valid one.
    return findOwner(this.#reader, known === undefined ? '' : medium, known ?? '');
  }

  phoneNumber(country: string, number: string): Promise<string | undefined> {
    return readPhoneNumber(country, number);
  }

  isAllowed(medium: string, address: string): boolean {
    return this.#deps.allowed.isAllowed(medium, address);
  }

  async bind(
    writer: AnyWriter,
    userId: string,
    { medium, address, validatedAt }: ValidatedAddress,
  ): Promise<void> {
    if (!this.isAllowed(medium, address)) throw addressDenied();
    const row = { medium, address, user_id: userId, validated_at: validatedAt };
    const writable = writerFor<ThirdPartyIdTables>(writer);
    const wasInserted = await insertAddress(writable, { ...row, added_at: this.#deps.clock.now() });
    if (!wasInserted) throw addressInUse();
    this.#changed(writer, { userId, medium, address, isAdded: true });
    await deleteValidationsOf(writable, medium, address);
  }

  endValidations(writer: AnyWriter, { medium, address }: ValidatedAddress): Promise<void> {
    return deleteValidationsOf(writerFor<ThirdPartyIdTables>(writer), medium, address);
  }

  unpublishAll(userId: string, server: string | undefined): Promise<boolean> {
    return this.#deps.published.unpublishAll(userId, server);
  }

  /** The addresses of an account, in the order in which they were added. */
  list(userId: string): Promise<AddressRow[]> {
    return listAddresses(this.#reader, userId);
  }

  /** Adds a validated address to an account. @throws MatrixError M_THREEPID_IN_USE, M_THREEPID_DENIED, errors of modules that refuse it */
  async add(userId: string, address: ValidatedAddress): Promise<void> {
    await this.checkUse?.(address.medium, address.address, false);
    await this.#deps.database.transaction<ThirdPartyIdTables, void>((writer) =>
      this.bind(writer, userId, address),
    );
  }

  /** Removes an address from an account. The account need not have the address. */
  async remove(userId: string, medium: string, address: string): Promise<void> {
    await this.#deps.database.transaction<ThirdPartyIdTables, void>((writer) =>
      this.#remove(writer, userId, { medium, address }),
    );
  }

  /**
   * Checks addresses that an administrator adds to an account.
   * @returns the addresses in canonical form
   * @throws MatrixError M_INVALID_PARAM, M_THREEPID_IN_USE when another account has one
   */
  async checkAll(
    userId: string,
    addresses: readonly { readonly medium: string; readonly address: string }[],
  ): Promise<ValidatedAddress[]> {
    const checked: ValidatedAddress[] = [];
    for (const { medium, address } of addresses) {
      const isKnownMedium = medium === 'email' || medium === 'msisdn';
      const canonical = isKnownMedium ? canonicalAddress(medium, address) : undefined;
      if (!isKnownMedium || canonical === undefined)
        throw invalidParam(`Invalid address: ${medium} ${address}`);
      const owner = await this.findUser(medium, canonical);
      if (owner !== undefined && owner !== userId) throw addressInUse();
      checked.push({ medium, address: canonical, validatedAt: this.#deps.clock.now() });
    }
    return checked;
  }

  /**
   * Replaces the addresses of an account, whatever `allowed_local_3pids` allows.
   * @param isNew whether the account was just created
   * @throws MatrixError M_THREEPID_IN_USE
   */
  async replace(userId: string, addresses: readonly ValidatedAddress[], isNew = false): Promise<void> {
    await this.#deps.database.transaction<ThirdPartyIdTables, void>(async (writer) => {
      const isWanted = (row: AddressRow) =>
        addresses.some(({ medium, address }) => medium === row.medium && address === row.address);
      const stored = await listAddresses(writer, userId);
      for (const row of stored) {
        if (!isWanted(row)) await this.#remove(writer, userId, row);
      }
      for (const { medium, address, validatedAt } of addresses) {
        const row = { medium, address, user_id: userId, validated_at: validatedAt };
        const wasInserted = await insertAddress(writer, { ...row, added_at: this.#deps.clock.now() });
        if (!wasInserted) throw addressInUse();
        const isAdded = !stored.some((one) => one.medium === medium && one.address === address);
        if (isAdded) this.#changed(writer, { userId, medium, address, isAdded });
        if (isNew) await this.#addedToNewUserHook(writer, userId, { medium, address });
      }
    });
  }

  async #remove(
    writer: Writer<ThirdPartyIdTables>,
    userId: string,
    row: Pick<AddressRow, 'medium' | 'address'>,
  ): Promise<void> {
    await deleteAddress(writer, userId, row.medium, row.address);
    const { medium, address } = row;
    this.#changed(writer, { userId, medium, address, isAdded: false });
    await this.#removedHook(writer, userId, row);
  }

  #changed(writer: AnyWriter, change: Parameters<NonNullable<AddressExtensions['changed']>>[0]): void {
    const { changed } = this.#deps.extensions ?? {};
    if (changed) afterCommit(writer, () => changed(change));
  }

  get #reader() {
    return this.#deps.database.reader<ThirdPartyIdTables>();
  }
}
