import { hash } from 'node:crypto';
import type { Clock } from '../kernel/clock.ts';
import type { Database, Writer } from '../kernel/database/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import { type Randomness, randomString } from '../kernel/randomness.ts';
import type { OpenIdTables } from './tables.ts';

/** Milliseconds until a token expires. */
const lifetime = 3_600_000;

/** Number of tokens of a user that remain when the surplus is deleted. */
const maxTokens = 1_000;

/** Number of tokens above `maxTokens` that a user may have before the surplus is deleted. */
const maxSurplus = 100;

/** Characters of a token: about 238 bits of entropy. */
const tokenLength = 40;

/** SHA-256, base64url. A slow hash is not needed because tokens are long and random. */
const hashOf = (token: string) => hash('sha256', token, 'base64url');

export interface OpenIdTokensDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly jobs: Jobs;
}

/**
 * Tokens that prove the identity of a user to other services. They are valid for nothing else.
 * Source: client-server API, "OpenID".
 */
export class OpenIdTokens {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #randomness: Randomness;

  constructor(deps: OpenIdTokensDeps) {
    this.#database = deps.database;
    this.#clock = deps.clock;
    this.#randomness = deps.randomness;
    deps.jobs.every('openid/clean', lifetime, { run: () => this.#clean() });
  }

  /** Issues a token. @returns the token, and the seconds until it expires */
  async issue(userId: string): Promise<{ token: string; expiresIn: number }> {
    const token = `hot_${randomString(this.#randomness, tokenLength)}`;
    const row = { hash: hashOf(token), user_id: userId, expires_ts: this.#clock.now() + lifetime };
    await this.#database.transaction<OpenIdTables, void>(async (writer) => {
      await writer.insertInto('openid_tokens').values(row).execute();
      await deleteSurplus(writer, userId);
    });
    return { token, expiresIn: lifetime / 1_000 };
  }

  /** Returns the user to whom a token belongs; `undefined` when it is unknown or has expired. */
  async userOf(token: string): Promise<string | undefined> {
    const row = await this.#database
      .reader<OpenIdTables>()
      .selectFrom('openid_tokens')
      .select('user_id')
      .where('hash', '=', hashOf(token))
      .where('expires_ts', '>', this.#clock.now())
      .executeTakeFirst();
    return row?.user_id;
  }

  async #clean(): Promise<void> {
    await this.#database.transaction<OpenIdTables, void>(async (writer) => {
      await writer.deleteFrom('openid_tokens').where('expires_ts', '<=', this.#clock.now()).execute();
    });
  }
}

/**
 * Deletes the tokens of a user that expire first, when the user has more than `maxTokens` and `maxSurplus` together.
 */
async function deleteSurplus(writer: Writer<OpenIdTables>, userId: string): Promise<void> {
  const newest = writer
    .selectFrom('openid_tokens')
    .select('expires_ts')
    .where('user_id', '=', userId)
    .orderBy('expires_ts', 'desc')
    .limit(1);
  const isOver = await newest.offset(maxTokens + maxSurplus).executeTakeFirst();
  if (!isOver) return;
  const lastKept = await newest.offset(maxTokens - 1).executeTakeFirstOrThrow();
  await writer
    .deleteFrom('openid_tokens')
    .where('user_id', '=', userId)
    .where('expires_ts', '<', lastKept.expires_ts)
    .execute();
}
