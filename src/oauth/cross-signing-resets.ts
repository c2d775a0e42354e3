import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { OAuthTables } from './tables.ts';

export interface CrossSigningResetsDeps {
  readonly database: Database;
  readonly clock: Clock;
}

/** Milliseconds for which a permission is valid. */
const lifetime = 600_000;

/**
 * Stores which users may replace their cross-signing keys once, because they have confirmed the replacement on a page, or
 * an administrator or the authentication service has allowed it.
 */
export class CrossSigningResets {
  readonly #deps: CrossSigningResetsDeps;

  constructor(deps: CrossSigningResetsDeps) {
    this.#deps = deps;
  }

  /**
   * Allows a user to replace the keys within 10 minutes.
   * @returns when the permission ends, in milliseconds since the epoch
   */
  async allow(userId: string): Promise<number> {
    const expiresAt = this.#deps.clock.now() + lifetime;
    await this.#allowUntil(userId, expiresAt);
    return expiresAt;
  }

  /**
   * Replaces the keys if the user is allowed to, and ends the permission: only one of several concurrent requests
   * succeeds. A request that fails, for instance because of an invalid signature, does not use the permission up.
   * @returns `undefined` when the user has no valid permission
   */
  async use<T>(userId: string, replace: () => Promise<T>): Promise<{ readonly result: T } | undefined> {
    const expiresAt = await this.#take(userId);
    if (expiresAt === undefined) return undefined;
    try {
      return { result: await replace() };
    } catch (error) {
      await this.#allowUntil(userId, expiresAt);
      throw error;
    }
  }

  /** Deletes a permission. @returns when it would have ended; `undefined` without a valid one */
  async #take(userId: string): Promise<number | undefined> {
    const { clock, database } = this.#deps;
    const validUntil = (row: { expires_at: number } | undefined) =>
      row !== undefined && row.expires_at > clock.now() ? row.expires_at : undefined;
    const stored = await database
      .reader<OAuthTables>()
      .selectFrom('cross_signing_resets')
      .select('expires_at')
      .where('user_id', '=', userId)
      .executeTakeFirst();
    if (validUntil(stored) === undefined) return undefined;
    return database.transaction<OAuthTables, number | undefined>(async (writer) =>
      validUntil(
        await writer
          .deleteFrom('cross_signing_resets')
          .where('user_id', '=', userId)
          .returning('expires_at')
          .executeTakeFirst(),
      ),
    );
  }

  async #allowUntil(userId: string, expires_at: number): Promise<void> {
    await this.#deps.database.transaction<OAuthTables, void>(async (writer) => {
      await writer
        .insertInto('cross_signing_resets')
        .values({ user_id: userId, expires_at })
        .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ expires_at }))
        .execute();
    });
  }
}
