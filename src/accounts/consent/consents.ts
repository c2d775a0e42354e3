import { createHmac, timingSafeEqual } from 'node:crypto';
import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type AnyWriter, afterCommit, type Database, writerFor } from '../../kernel/database/index.ts';
import { localpartOf } from '../../protocol/index.ts';
import type { AccountTables } from '../tables.ts';

export interface ConsentsDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** The option `form_secret`, which signs the links to the form; without it there are no forms. */
  readonly formSecret: string | null;
  /** The version of the policy that users have to agree to; null without a policy. */
  readonly currentVersion: string | null;
  /** The public base URL of this server. */
  readonly baseUrl: string;
  readonly caches: CacheRegistry;
}

/** Stores which version of the policy each user has agreed to, and signs the links to the form. */
export class Consents {
  readonly #deps: ConsentsDeps;
  /** Users who have agreed to the current version. */
  readonly #agreed: Cache<string, true>;

  constructor(deps: ConsentsDeps) {
    this.#deps = deps;
    this.#agreed = deps.caches.create('consents', { size: 10_000, maxBytes: MiB, sizeOf: () => 100 });
  }

  /** Whether the cache knows that a user has agreed to the current version. */
  isKnownToAgree(userId: string): boolean {
    return this.#agreed.get(userId) === true;
  }

  /** Whether a user has agreed to the current version of the policy; true without a policy. */
  async hasAgreed(userId: string): Promise<boolean> {
    const { currentVersion } = this.#deps;
    if (currentVersion === null || this.isKnownToAgree(userId)) return true;
    if ((await this.versionOf(userId)) !== currentVersion) return false;
    this.#agreed.set(userId, true);
    return true;
  }

  /** Returns the user's signed link to the form for agreeing to the policy. */
  link(userId: string): string {
    const user = localpartOf(userId);
    const url = new URL('_matrix/consent', this.#deps.baseUrl);
    url.search = new URLSearchParams({ u: user, h: this.signature(user) ?? '' }).toString();
    return url.href;
  }

  /** Returns the version of the policy that a user has agreed to last; `undefined` for users who have never agreed. */
  async versionOf(userId: string): Promise<string | undefined> {
    return (await this.agreementOf(userId))?.version;
  }

  /** Returns the version that a user has agreed to last, and when: `agreed_at` is in milliseconds since the epoch. */
  agreementOf(
    userId: string,
  ): Promise<Pick<AccountTables['user_consents'], 'version' | 'agreed_at'> | undefined> {
    return this.#deps.database
      .reader<AccountTables>()
      .selectFrom('user_consents')
      .select(['version', 'agreed_at'])
      .where('user_id', '=', userId)
      .executeTakeFirst();
  }

  /** Records that a user has agreed, inside the caller's transaction. */
  async recordIn(writer: AnyWriter, userId: string, version: string): Promise<void> {
    const values = { version, agreed_at: this.#deps.clock.now() };
    await writerFor<AccountTables>(writer)
      .insertInto('user_consents')
      .values({ user_id: userId, ...values })
      .onConflict((conflict) => conflict.column('user_id').doUpdateSet(values))
      .execute();
    afterCommit(writer, () => this.#agreed.delete(userId));
  }

  /** Records that a user has agreed. */
  async record(userId: string, version: string): Promise<void> {
    await this.#deps.database.transaction<AccountTables, void>((writer) =>
      this.recordIn(writer, userId, version),
    );
  }

  /**
   * Returns the signature of a link to the form of a user: the HMAC-SHA256 of `user` in hexadecimal. `undefined` when
   * `form_secret` is not set.
   * @param user as in the link: the local part of the user id, or the user id
   */
  signature(user: string): string | undefined {
    const { formSecret } = this.#deps;
    return formSecret === null ? undefined : createHmac('sha256', formSecret).update(user).digest('hex');
  }

  /** Whether a link to the form of a user was made by this server. */
  isSigned(user: string, signature: string): boolean {
    const [expected, given] = [Buffer.from(this.signature(user) ?? ''), Buffer.from(signature)];
    return expected.length > 0 && expected.length === given.length && timingSafeEqual(expected, given);
  }
}
