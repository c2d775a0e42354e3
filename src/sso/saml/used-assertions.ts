import { hash } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { SsoTables } from '../tables.ts';

/** An assertion whose signature was verified. */
export interface UsableAssertion {
  readonly issuer: string;
  readonly id: string;
  /** Milliseconds since the epoch when the assertion becomes too old to be accepted. */
  readonly expiresAt: number;
}

/** Stores the ids of used assertions until they expire, so that no assertion logs a user in twice. */
export class UsedAssertions {
  readonly #database: Database;
  readonly #clock: Clock;

  constructor({ database, clock }: { readonly database: Database; readonly clock: Clock }) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Marks an assertion as used. @returns false when it was used before */
  async use({ issuer, id, expiresAt }: UsableAssertion): Promise<boolean> {
    const row = { assertion_hash: hash('sha256', `${issuer} ${id}`, 'base64url'), expires_at: expiresAt };
    return this.#database.transaction<SsoTables, boolean>(async (writer) => {
      await writer.deleteFrom('used_assertions').where('expires_at', '<', this.#clock.now()).execute();
      const { numInsertedOrUpdatedRows } = await writer
        .insertInto('used_assertions')
        .values(row)
        .onConflict((conflict) => conflict.column('assertion_hash').doNothing())
        .executeTakeFirst();
      return (numInsertedOrUpdatedRows ?? 0n) > 0n;
    });
  }
}
