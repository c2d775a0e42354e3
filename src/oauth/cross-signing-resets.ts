import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { OAuthTables } from './tables.ts';

export interface CrossSigningResetsDeps {
  readonly database: Database;
  readonly clock: Clock;
}

/** Milliseconds for which a user's confirmation is valid. */
const lifetime = 600_000;

/** Stores which users have confirmed on a page that an app may replace their cross-signing keys once. */
export class CrossSigningResets {
  readonly #deps: CrossSigningResetsDeps;

  constructor(deps: CrossSigningResetsDeps) {
    this.#deps = deps;
  }

  async allow(userId: string): Promise<void> {
    const expires_at = this.#deps.clock.now() + lifetime;
    await this.#deps.database.transaction<OAuthTables, void>(async (writer) => {
      await writer
        .insertInto('cross_signing_resets')
        .values({ user_id: userId, expires_at })
        .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ expires_at }))
        .execute();
    });
  }

  async isAllowed(userId: string): Promise<boolean> {
    const row = await this.#deps.database
      .reader<OAuthTables>()
      .selectFrom('cross_signing_resets')
      .select('user_id')
      .where('user_id', '=', userId)
      .where('expires_at', '>', this.#deps.clock.now())
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Ends a confirmation, after the keys have been replaced. */
  async end(userId: string): Promise<void> {
    await this.#deps.database.transaction<OAuthTables, void>(async (writer) => {
      await writer.deleteFrom('cross_signing_resets').where('user_id', '=', userId).execute();
    });
  }
}
