import { type AnyWriter, type Database, writerFor } from '../../kernel/database/index.ts';
import { invalidParam, MatrixError } from '../../protocol/index.ts';
import type { SsoTables } from '../tables.ts';
import {
  deleteExternalId,
  type ExternalId,
  externalIdsOf,
  findAccountOf,
  insertExternalId,
  type LinkedAccount,
  renameExternalId,
  setIssuerOf,
} from './external-id-store.ts';

/** Maximum characters of an external id, which is part of a primary key. */
export const maxExternalId = 500;

/** The users of identity providers, and their accounts on this server. */
export class ExternalIds {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Returns the user id of the account of a provider's user, also of a deactivated account. */
  async find(provider: string, externalId: string): Promise<string | undefined> {
    return (await this.findAccount(provider, externalId))?.userId;
  }

  /** Returns the account of a provider's user, also a deactivated one. */
  async findAccount(provider: string, externalId: string): Promise<LinkedAccount | undefined> {
    if (!isStorable({ provider, externalId })) return undefined;
    return findAccountOf(this.#database.reader<SsoTables>(), { provider, externalId });
  }

  list(userId: string): Promise<ExternalId[]> {
    return externalIdsOf(this.#database.reader<SsoTables>(), userId);
  }

  /** Adds an external id to an account, inside the caller's transaction. @returns whether the id was free */
  addIn(writer: AnyWriter, userId: string, id: ExternalId): Promise<boolean> {
    return insertExternalId(writerFor<SsoTables>(writer), userId, id);
  }

  /**
   * Adds an external id to an account that has none at the provider.
   * @returns false when the account has an external id at the provider, or the external id belongs to an account
   */
  link(userId: string, id: ExternalId): Promise<boolean> {
    return this.#database.transaction<SsoTables, boolean>(async (writer) => {
      const linked = await externalIdsOf(writer, userId);
      if (linked.some(({ provider }) => provider === id.provider)) return false;
      return insertExternalId(writer, userId, id);
    });
  }

  /**
   * Stores the issuer of an external id, unless one is stored already.
   * @param issuer the entity id of the SAML identity provider that has authenticated the user; there may be several,
   * which share the provider `saml` of external ids
   */
  setIssuer(id: ExternalId, issuer: string): Promise<void> {
    return this.#database.transaction<SsoTables, void>((writer) => setIssuerOf(writer, id, issuer));
  }

  /**
   * Replaces an external id of an account by `to`, if its stored issuer is `id.issuer`.
   * @returns the user id of the account; `undefined` when no account has the external id with this issuer
   */
  rename(id: ExternalId & { readonly issuer: string }, to: string): Promise<string | undefined> {
    return this.#database.transaction<SsoTables, string | undefined>((writer) =>
      renameExternalId(writer, id, to),
    );
  }

  /**
   * Checks that external ids may be linked to an account.
   * @throws MatrixError 409 M_UNKNOWN when one belongs to another account, M_INVALID_PARAM when one contains U+0000
   */
  async checkAll(userId: string, ids: readonly ExternalId[]): Promise<void> {
    for (const { provider, externalId } of ids) {
      if (!isStorable({ provider, externalId })) throw invalidParam('An external id contains U+0000');
      const owner = await this.find(provider, externalId);
      if (owner !== undefined && owner !== userId) throw inUse({ provider, externalId });
    }
  }

  /**
   * Replaces the external ids of an account.
   * @throws MatrixError 409 M_UNKNOWN when an id belongs to another account; then nothing changes
   */
  async replace(userId: string, ids: readonly ExternalId[]): Promise<void> {
    await this.#database.transaction<SsoTables, void>(async (writer) => {
      const isSame = (one: ExternalId) => (other: ExternalId) =>
        one.provider === other.provider && one.externalId === other.externalId;
      for (const old of await externalIdsOf(writer, userId)) {
        if (!ids.some(isSame(old))) await deleteExternalId(writer, userId, old);
      }
      for (const id of ids) {
        if ((await findAccountOf(writer, id))?.userId === userId) continue;
        if (!(await insertExternalId(writer, userId, id))) throw inUse(id);
      }
    });
  }
}

/** Whether databases can store and look up an external id. */
const isStorable = ({ provider, externalId }: ExternalId) =>
  !provider.includes('\0') && !externalId.includes('\0');

const inUse = ({ provider, externalId }: ExternalId) =>
  new MatrixError(409, 'M_UNKNOWN', `External id ${externalId} of ${provider} belongs to another user`);
