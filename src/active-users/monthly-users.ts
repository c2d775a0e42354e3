import type { Clock, Timer } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { ActiveUserTables } from './tables.ts';

/** A user who is counted. */
interface CountedUser {
  /** Milliseconds since the epoch of the last activity that was recorded. */
  activeAt: number;
  /** Id of the application service that created the account. */
  readonly appservice: string | undefined;
}

/** Milliseconds since the last activity after which a user is not counted. */
const month = 30 * 86_400_000;

/** Milliseconds that the recorded activity may lag behind the last activity, so that few rows are written. */
const granularity = 3_600_000;

/** Milliseconds from a change until the changed rows are written. */
const flushInterval = 60_000;

const upsert = `INSERT INTO monthly_active_users (user_id, active_at, appservice_id) VALUES (?, ?, ?)
  ON CONFLICT (user_id) DO UPDATE SET active_at = excluded.active_at`;

/**
 * Stores the users who were active in the last 30 days. All are in memory, so that a request costs only a look-up, and
 * are written to the database within a minute. Users whom a crash loses are counted again with their next request.
 */
export class MonthlyUsers {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #users = new Map<string, CountedUser>();
  /** Numbers of counted users by the id of the application service that created their accounts. */
  readonly #ofServices = new Map<string, number>();
  /** Users whose rows are to be written or deleted. */
  #unwritten = new Set<string>();
  #timer: Timer | undefined;
  #flushing: Promise<void> = Promise.resolve();

  constructor({ database, clock, log }: { database: Database; clock: Clock; log: Logger }) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
  }

  /** Loads the users whom earlier processes have counted. */
  async load(): Promise<void> {
    const rows = await this.#database
      .scanner<ActiveUserTables>()
      .selectFrom('monthly_active_users')
      .selectAll()
      .execute();
    for (const row of rows) this.#set(row.user_id, row.active_at, row.appservice_id ?? undefined);
  }

  /** Number of counted users, except users of application services. The number of the latter has no limit. */
  get count(): number {
    let ofServices = 0;
    for (const number of this.#ofServices.values()) ofServices += number;
    return this.#users.size - ofServices;
  }

  /**
   * Numbers of counted users by the application service that created their accounts. Users of no service are under
   * `native`.
   */
  get byService(): ReadonlyMap<string, number> {
    return new Map([['native', this.count], ...this.#ofServices]);
  }

  has(userId: string): boolean {
    return this.#users.has(userId);
  }

  /** Whether a counted user belongs to an application service. */
  isOfService(userId: string): boolean {
    return this.#users.get(userId)?.appservice !== undefined;
  }

  /** Records the activity of a counted user without I/O. @returns whether the user is counted */
  refresh(userId: string): boolean {
    const user = this.#users.get(userId);
    if (user === undefined) return false;
    const now = this.#clock.now();
    if (now - user.activeAt <= granularity) return true;
    user.activeAt = now;
    this.#write(userId);
    return true;
  }

  /** Counts a user from now on. */
  add(userId: string, appservice: string | undefined): void {
    if (this.refresh(userId)) return;
    this.#set(userId, this.#clock.now(), appservice);
    this.#write(userId);
  }

  /**
   * Stops counting a user. The row is deleted even if another slice has deleted it, since a write that began earlier
   * may restore it.
   */
  forget(userId: string): void {
    if (this.#users.has(userId)) this.#remove(userId);
  }

  /**
   * Stops counting the users who were not active for 30 days. If more users than the maximum are left, also stops
   * counting the least recently active of them. Users of application services do not count towards the maximum.
   * @param max `undefined`: any number
   * @param reserved users who stay in any case
   */
  removeOld(max: number | undefined, reserved: ReadonlySet<string>): void {
    const oldest = this.#clock.now() - month;
    const removable = [...this.#users].filter(([userId]) => !reserved.has(userId));
    for (const [userId, { activeAt }] of removable) if (activeAt < oldest) this.#remove(userId);
    if (max === undefined || this.count <= max) return;
    const left = removable.filter(
      ([userId, { appservice }]) => appservice === undefined && this.#users.has(userId),
    );
    left.sort(([, a], [, b]) => a.activeAt - b.activeAt);
    for (const [userId] of left.slice(0, this.count - max)) this.#remove(userId);
  }

  /** Writes the changed rows; resolves when they are on disk. After a failure they are written with later changes. */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#flushing = this.#flushing.then(() => this.#flush());
    return this.#flushing;
  }

  #set(userId: string, activeAt: number, appservice: string | undefined): void {
    this.#users.set(userId, { activeAt, appservice });
    if (appservice !== undefined)
      this.#ofServices.set(appservice, (this.#ofServices.get(appservice) ?? 0) + 1);
  }

  #remove(userId: string): void {
    const appservice = this.#users.get(userId)?.appservice;
    this.#users.delete(userId);
    this.#write(userId);
    if (appservice === undefined) return;
    const rest = (this.#ofServices.get(appservice) ?? 1) - 1;
    if (rest > 0) this.#ofServices.set(appservice, rest);
    else this.#ofServices.delete(appservice);
  }

  #write(userId: string): void {
    this.#unwritten.add(userId);
    this.#timer ??= this.#clock.setTimer(flushInterval, () => void this.flush());
  }

  async #flush(): Promise<void> {
    const unwritten = this.#unwritten;
    if (unwritten.size === 0) return;
    this.#unwritten = new Set();
    const upserts: (string | number | null)[][] = [];
    const removals: string[][] = [];
    for (const userId of unwritten) {
      const user = this.#users.get(userId);
      if (user) upserts.push([userId, user.activeAt, user.appservice ?? null]);
      else removals.push([userId]);
    }
    const statements = [
      { sql: upsert, rows: upserts },
      { sql: 'DELETE FROM monthly_active_users WHERE user_id = ?', rows: removals },
    ];
    try {
      await this.#database.batch(statements.filter(({ rows }) => rows.length > 0));
    } catch (error) {
      this.#log.warn({ err: error }, 'Failed to write the monthly active users');
      for (const userId of unwritten) this.#unwritten.add(userId);
    }
  }
}
