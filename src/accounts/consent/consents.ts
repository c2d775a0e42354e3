import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, writerFor } from '../../kernel/database/index.ts';
import type { AccountTables } from '../tables.ts';

export interface ConsentsDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** The option `form_secret`, which signs the links to the form; without it there are no forms. */
  readonly formSecret: string | null;
}

/** Stores which version of the policy each user has agreed to, and signs the links to the form. */
export class Consents {
  readonly #deps: ConsentsDeps;

  constructor(deps: ConsentsDeps) {
    this.#deps = deps;
  }

  /** The version that a user has agreed to last. */
  async versionOf(userId: string): Promise<string | undefined> {
    const row = await this.#deps.database
      .reader<AccountTables>()
      .selectFrom('user_consents')
      .select('version')
      .where('user_id', '=', userId)
      .executeTakeFirst();
    return row?.version;
  }

  /** Records that a user has agreed, inside the caller's transaction. */
  async recordIn(writer: AnyWriter, userId: string, version: string): Promise<void> {
    const values = { version, agreed_at: this.#deps.clock.now() };
    await writerFor<AccountTables>(writer)
      .insertInto('user_consents')
      .values({ user_id: userId, ...values })
      .onConflict((conflict) => conflict.column('user_id').doUpdateSet(values))
      .execute();
  }

  async record(userId: string, version: string): Promise<void> {
    await this.#deps.database.transaction<AccountTables, void>((writer) =>
      this.recordIn(writer, userId, version),
    );
  }

  /**
   * Returns the signature of a link to the form of a user: HMAC-SHA256 of the name, hexadecimal.
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
