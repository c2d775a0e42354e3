import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import { RateLimiter } from '../../kernel/rate-limits/index.ts';
import {
  deleteOverride,
  type LimitOverride,
  type LimitOverrideTables,
  readOverrides,
  writeOverride,
} from './store.ts';

/** The override of a user, and the limiter made from it. */
interface Entry {
  readonly override: LimitOverride;
  /** Absent for users without limits. */
  readonly limiter: RateLimiter | undefined;
}

/**
 * Rate limit overrides that administrators have set for users: no limits at all, or another limit for
 * messages. All overrides are in memory, because few users have one and each request looks for one.
 */
export class LimitOverrides {
  readonly #database: Database;
  readonly #clock: Clock;
  /** By user id. */
  readonly #entries = new Map<string, Entry>();

  private constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Loads all overrides. */
  static async open(database: Database, clock: Clock): Promise<LimitOverrides> {
    const overrides = new LimitOverrides(database, clock);
    for (const [userId, override] of await readOverrides(database.reader<LimitOverrideTables>())) {
      overrides.#keep(userId, override);
    }
    return overrides;
  }

  /**
   * Returns `none` for a user to whom no limit applies, the limiter of the user's messages when an override sets their
   * limit, and `undefined` for a user without an override.
   */
  limiterOf(userId: string): 'none' | RateLimiter | undefined {
    const entry = this.#entries.get(userId);
    return entry && (entry.limiter ?? 'none');
  }

  /**
   * Whether no rate limit applies to a key of a rate limiter: a user id, or a text that begins with a user id and a
   * space.
   */
  isExempt(key: string): boolean {
    return this.limiterOf(key.split(' ', 1)[0] ?? key) === 'none';
  }

  /** Returns the override of a user; `undefined` without one. */
  get(userId: string): LimitOverride | undefined {
    return this.#entries.get(userId)?.override;
  }

  /** Sets or replaces the override of a user. */
  async set(userId: string, override: LimitOverride): Promise<void> {
    await this.#database.transaction<LimitOverrideTables, void>((writer) =>
      writeOverride(writer, userId, override),
    );
    this.#keep(userId, override);
  }

  /** Deletes the override of a user. */
  async remove(userId: string): Promise<void> {
    await this.#database.transaction<LimitOverrideTables, void>((writer) => deleteOverride(writer, userId));
    this.#entries.delete(userId);
  }

  #keep(userId: string, override: LimitOverride): void {
    const { messages_per_second: per_second, burst_count } = override;
    const limiter =
      per_second === 0 ? undefined : new RateLimiter({ per_second, burst_count }, this.#clock, 1);
    this.#entries.set(userId, { override, limiter });
  }
}
