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

interface Entry {
  readonly override: LimitOverride;
  /** Absent for users without limits. */
  readonly limiter: RateLimiter | undefined;
}

/**
 * Users to whom administrators have given other rate limits than everybody has: none, or others for sending messages.
 * They are few, and all in memory, so that a request costs no query.
 */
export class LimitOverrides {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  private constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Reads all that are on disk. */
  static async open(database: Database, clock: Clock): Promise<LimitOverrides> {
    const overrides = new LimitOverrides(database, clock);
    for (const [userId, override] of await readOverrides(database.reader<LimitOverrideTables>())) {
      overrides.#keep(userId, override);
    }
    return overrides;
  }

  /** `none`: nothing that the user does is limited; or what limits the user's messages; or nothing special. */
  limiterOf(userId: string): 'none' | RateLimiter | undefined {
    const entry = this.#entries.get(userId);
    return entry && (entry.limiter ?? 'none');
  }

  /** Whether nothing that the user does is limited. */
  isExempt(userId: string): boolean {
    return this.limiterOf(userId) === 'none';
  }

  /** What an administrator has decided; `undefined`: nothing. */
  get(userId: string): LimitOverride | undefined {
    return this.#entries.get(userId)?.override;
  }

  /** Decides for a user from now on, in place of what was decided before. */
  async set(userId: string, override: LimitOverride): Promise<void> {
    await this.#database.transaction<LimitOverrideTables, void>((writer) =>
      writeOverride(writer, userId, override),
    );
    this.#keep(userId, override);
  }

  /** The usual limits hold for the user again. */
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
