import type { Accounts } from '../../accounts/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import type { AccountValidityTables } from './tables.ts';

export interface AccountValidityDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly accounts: Pick<Accounts, 'getUser' | 'setLocked'>;
}

const job = 'admin/account-expiry';

/** Locks accounts when their validity ends, and unlocks these accounts when an administrator renews them. */
export class AccountValidity {
  readonly #deps: AccountValidityDeps;
  /** Runs the renewals and expiries of an account one after the other. Keys are user ids. */
  readonly #mutex = new KeyedMutex();

  /** Registers the job that locks an account at the end of its validity. Must be called before jobs are started. */
  constructor(deps: AccountValidityDeps) {
    this.#deps = deps;
    deps.jobs.register<string>(job, {
      run: ({ payload: userId }) => this.#mutex.run(userId, () => this.#expire(userId)),
    });
  }

  /**
   * Sets the time until which an account is valid. Unlocks an account that was locked because its validity ended, if
   * `until` is in the future.
   * @param until milliseconds since the epoch
   */
  renew(userId: string, until: number): Promise<void> {
    return this.#mutex.run(userId, () => this.#renew(userId, until));
  }

  async #renew(userId: string, until: number): Promise<void> {
    const { database, jobs, clock, accounts } = this.#deps;
    const validity = await this.#read(userId);
    await database.transaction<AccountValidityTables, void>(async (writer) => {
      await writer
        .insertInto('account_validity')
        .values({ user_id: userId, expiration_ts: until, is_expired: 0 })
        .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ expiration_ts: until }))
        .execute();
      await jobs.schedule(writer, { kind: job, key: userId, payload: userId, runAt: until, replace: true });
    });
    if (!validity?.is_expired || until <= clock.now()) return;
    // `is_expired` is cleared last: if the server stops earlier, the next renewal unlocks the account.
    await accounts.setLocked(userId, false);
    await this.#setExpired(userId, false);
  }

  /** Locks an account whose validity has ended, unless it is deactivated or locked already. */
  async #expire(userId: string): Promise<void> {
    const { clock, accounts } = this.#deps;
    const known = await this.#read(userId);
    if (known === undefined || known.expiration_ts > clock.now()) return;
    const user = await accounts.getUser(userId);
    if (user === undefined || user.isDeactivated || user.isLocked) return;
    // `is_expired` is set first, so that a renewal unlocks the account even if the server stops right after locking it.
    await this.#setExpired(userId, true);
    await accounts.setLocked(userId, true);
  }

  async #setExpired(userId: string, isExpired: boolean): Promise<void> {
    await this.#deps.database.transaction<AccountValidityTables, void>(async (writer) => {
      await writer
        .updateTable('account_validity')
        .set({ is_expired: isExpired ? 1 : 0 })
        .where('user_id', '=', userId)
        .execute();
    });
  }

  #read(userId: string) {
    return this.#deps.database
      .reader<AccountValidityTables>()
      .selectFrom('account_validity')
      .selectAll()
      .where('user_id', '=', userId)
      .executeTakeFirst();
  }
}
