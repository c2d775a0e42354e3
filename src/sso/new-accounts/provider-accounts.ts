import {
  type AccountsSlice,
  activeAccount,
  type Limiter,
  type ThirdPartyIdentifiers,
  type User,
} from '../../accounts/index.ts';
import { canonicalAddress } from '../../identity-servers/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter } from '../../kernel/database/index.ts';
import { MatrixError, type UserId } from '../../protocol/index.ts';
import type { IdentityProvider, RemoteUser } from '../browser-logins/identity-provider.ts';
import { LoginFailure } from '../browser-logins/login-failure.ts';
import type { NewUser } from '../browser-logins/login-sessions.ts';
import type { ExternalId, LinkedAccount } from '../external-ids/external-id-store.ts';
import { type ExternalIds, maxExternalId } from '../external-ids/external-ids.ts';
import type { ProviderProfiles } from './provider-profiles.ts';

export interface ProviderAccountsDeps {
  readonly accounts: () => Pick<AccountsSlice, 'accounts' | 'registration' | 'consents'>;
  readonly thirdPartyIds: Pick<ThirdPartyIdentifiers, 'bind' | 'findUser' | 'isAllowed'>;
  readonly externalIds: ExternalIds;
  readonly profiles: ProviderProfiles;
  readonly clock: Clock;
  /** Limits how many accounts the logins of clients with one address create. */
  readonly limiter: Limiter;
  readonly serverName: string;
}

/**
 * Maximum number of local parts that are tried for a new user: the mapped one, and then the same with a
 * number appended.
 */
const maxAttempts = 1000;

/** Finds and creates the accounts of users whom a provider has authenticated. */
export class ProviderAccounts {
  readonly #deps: ProviderAccountsDeps;

  constructor(deps: ProviderAccountsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the user id of the account; `undefined` for a new user. Links an existing account of the user to the
   * provider.
   * @throws LoginFailure when the id of the user is unusable, or the account is deactivated, locked, or belongs to a
   * guest, an application service or another user
   */
  async find(provider: IdentityProvider, remote: RemoteUser): Promise<string | undefined> {
    const { externalId } = remote;
    if (externalId === '' || externalId.length > maxExternalId) {
      throw new LoginFailure('mapping_error', 'The identity provider sent no usable id of the user');
    }
    const { externalIds } = this.#deps;
    const known = (await this.#byId(provider, remote)) ?? (await this.#byOtherId(provider, remote));
    if (known !== undefined) {
      await this.#checkActive(known);
      return known;
    }
    const existing = await this.#existingAccount(remote);
    if (existing === undefined) return undefined;
    const { userId } = existing;
    await this.#checkActive(userId);
    if (existing.isGuest || existing.appservice !== undefined) {
      throw new LoginFailure(
        'mapping_error',
        `The account ${userId} belongs to a guest or an application service, and cannot be linked`,
        { status: 403 },
      );
    }
    if (!(await externalIds.link(userId, idOf(provider, remote)))) {
      const message = `The account ${userId} belongs to another user of ${provider.name}`;
      throw new LoginFailure('mapping_error', message, { status: 403 });
    }
    return userId;
  }

  /**
   * Returns the user id of the account with the external id.
   * @throws LoginFailure when the account belongs to a user of another identity provider
   */
  async #byId(provider: IdentityProvider, { externalId, issuer }: RemoteUser): Promise<string | undefined> {
    const { externalIds } = this.#deps;
    const account = await externalIds.findAccount(provider.id, externalId);
    if (account === undefined || issuer === undefined || account.issuer === issuer.entityId)
      return account?.userId;
    if (account.issuer === undefined) {
      // The account was stored without an issuer. Storing it keeps the account with this identity provider when the
      // metadata lists others later.
      await externalIds.setIssuer({ provider: provider.id, externalId }, issuer.entityId);
      return account.userId;
    }
    // The account belongs to an identity provider that the metadata no longer lists. While the metadata listed several,
    // an account of this user may have been created under an id that contains the entity id.
    const otherAccount = issuer.isOneOfSeveral
      ? undefined
      : await externalIds.findAccount(provider.id, issuer.otherExternalId);
    if (otherAccount !== undefined && mayUse(otherAccount, issuer)) return otherAccount.userId;
    throw accountOfAnotherProvider(externalId);
  }

  /**
   * Returns the user id of the account with the external id in its other form (with or without the entity id).
   * @throws LoginFailure when the account belongs, or may belong, to a user of another identity provider
   */
  async #byOtherId(
    provider: IdentityProvider,
    { externalId, issuer }: RemoteUser,
  ): Promise<string | undefined> {
    const { externalIds } = this.#deps;
    if (issuer === undefined) return undefined;
    const { entityId, isOneOfSeveral, otherExternalId } = issuer;
    const account = await externalIds.findAccount(provider.id, otherExternalId);
    if (account === undefined) return undefined;
    if (!isOneOfSeveral) {
      if (!mayUse(account, issuer)) throw accountOfAnotherProvider(otherExternalId);
      return account.userId;
    }
    if (account.issuer === undefined) {
      const message = `An account of ${otherExternalId} is not assigned to an identity provider yet. Please ask the administrator.`;
      throw new LoginFailure('mapping_error', message, { status: 403 });
    }
    if (account.issuer !== entityId) return undefined;
    const old = { provider: provider.id, externalId: otherExternalId, issuer: entityId };
    // A concurrent login may have renamed the external id already.
    return (await externalIds.rename(old, externalId)) ?? externalIds.find(provider.id, externalId);
  }

  /** Updates the profile of an account from the profile that the provider reports. */
  async update(userId: string, remote: RemoteUser): Promise<void> {
    await this.#deps.profiles.update(userId, remote);
  }

  /**
   * Checks a user name that a new user has chosen.
   * @returns the user id
   * @throws MatrixError M_INVALID_USERNAME, M_EXCLUSIVE, M_USER_IN_USE
   */
  async checkName(localpart: string): Promise<UserId> {
    const { accounts, registration } = this.#deps.accounts();
    const userId = registration.userIdFor(localpart);
    if (await accounts.isTaken(userId)) {
      throw new MatrixError(400, 'M_USER_IN_USE', 'This user name is taken');
    }
    return userId;
  }

  /**
   * Returns a free user id for a new user who chooses none: the local part, with a number appended when it is
   * taken.
   * @throws LoginFailure
   */
  async freeUserId(localpart: string): Promise<UserId> {
    const { accounts, registration } = this.#deps.accounts();
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      let userId: UserId;
      try {
        userId = registration.userIdFor(attempt === 0 ? localpart : `${localpart}${attempt}`);
      } catch (cause) {
        if (!(cause instanceof MatrixError)) throw cause;
        throw new LoginFailure(
          'mapping_error',
          `The user name cannot be used on this server: ${cause.message}`,
          {
            cause,
          },
        );
      }
      if (!(await accounts.isTaken(userId))) return userId;
    }
    throw new LoginFailure('mapping_error', 'No user name is free for you. Please ask the administrator.');
  }

  /**
   * Creates the account of a new user.
   * @returns the user id of the new account, or of the account that a concurrent login has created
   * @throws LoginFailure; MatrixError M_USER_IN_USE, M_LIMIT_EXCEEDED
   */
  async create(provider: IdentityProvider, newUser: NewUser, ip: string): Promise<string> {
    const { limiter } = this.#deps;
    const { remote } = newUser;
    const { registration } = this.#deps.accounts();
    registration.checkNewAccount();
    limiter.take(ip);
    const id = idOf(provider, remote);
    const emails = await this.#freeAddresses(remote.emails ?? []);
    try {
      const userId =
        newUser.localpart === undefined
          ? await this.freeUserId(remote.localpart ?? '')
          : registration.userIdFor(newUser.localpart);
      const onCreate = (writer: AnyWriter) => this.#store(writer, userId, { id, emails, newUser });
      await registration.create({ userId, displayName: remote.displayName, onCreate });
      await this.#deps.profiles.setPicture(userId, remote);
      return userId;
    } catch (error) {
      const other = await this.#byId(provider, remote);
      if (other !== undefined) return other;
      throw error;
    }
  }

  async #store(
    writer: AnyWriter,
    userId: UserId,
    {
      id,
      emails,
      newUser,
    }: {
      readonly id: ExternalId;
      readonly emails: readonly string[];
      readonly newUser: NewUser;
    },
  ): Promise<void> {
    const { clock, externalIds, thirdPartyIds } = this.#deps;
    if (!(await externalIds.addIn(writer, userId, id))) {
      throw new LoginFailure('mapping_error', 'Another login of yours has just created an account');
    }
    for (const address of emails) {
      await thirdPartyIds.bind(writer, userId, { medium: 'email', address, validatedAt: clock.now() });
    }
    if (newUser.accepted !== undefined) {
      await this.#deps.accounts().consents.recordIn(writer, userId, newUser.accepted);
    }
  }

  /**
   * Returns the allowed addresses that no account has, so that no user takes an address over by naming it at a
   * provider.
   */
  async #freeAddresses(emails: readonly string[]): Promise<string[]> {
    const { thirdPartyIds } = this.#deps;
    const free: string[] = [];
    for (const email of new Set(emails.map((address) => canonicalAddress('email', address)))) {
      if (email === undefined || !thirdPartyIds.isAllowed('email', email)) continue;
      if ((await thirdPartyIds.findUser('email', email)) === undefined) free.push(email);
    }
    return free;
  }

  async #existingAccount({ existingLocalpart: localpart }: RemoteUser): Promise<User | undefined> {
    if (localpart === undefined || localpart === '') return undefined;
    return this.#deps.accounts().accounts.getUser(`@${localpart}:${this.#deps.serverName}`);
  }

  /** Checks that an account may log in. @throws LoginFailure when it is deactivated or locked */
  async #checkActive(userId: string): Promise<void> {
    try {
      await activeAccount(this.#deps.accounts().accounts, userId);
    } catch (cause) {
      if (!(cause instanceof MatrixError)) throw cause;
      const template = cause.errcode === 'M_USER_DEACTIVATED' ? 'sso_account_deactivated.html' : undefined;
      throw new LoginFailure(cause.errcode, cause.message, {
        status: 403,
        cause,
        ...(template !== undefined && { template }),
      });
    }
  }
}

/** Whether an account belongs to the identity provider of a user, or its identity provider is unknown. */
const mayUse = (account: LinkedAccount, { entityId }: NonNullable<RemoteUser['issuer']>) =>
  account.issuer === undefined || account.issuer === entityId;

const accountOfAnotherProvider = (externalId: string) =>
  new LoginFailure(
    'mapping_error',
    `The account of ${externalId} belongs to a user of another identity provider. Please ask the administrator.`,
    { status: 403 },
  );

const idOf = ({ id }: IdentityProvider, { externalId, issuer }: RemoteUser): ExternalId => ({
  provider: id,
  externalId,
  issuer: issuer?.entityId,
});
