import type { Clock, Timer } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Logger } from '../kernel/observability/index.ts';

export interface DeviceActivity {
  readonly userId: string;
  /** `undefined` for application services that act without a device. */
  readonly deviceId: string | undefined;
  readonly ip: string;
  readonly userAgent: string | undefined;
}

/** Receives activities of users; must be quick and must not throw. */
export type ActivityListener = (activity: DeviceActivity) => void;

/** Milliseconds from the first pending activity to the write of all pending activities. */
const flushInterval = 60_000;

/** A flush starts early when this many different activities are pending. */
const maxPending = 10_000;

/** Minimum milliseconds between two deletions of old addresses. */
const purgeInterval = 3_600_000;

/** Maximum characters of a stored user agent; the rest is cut off. */
const maxUserAgentLength = 512;

const upsertIp = `INSERT INTO user_ips (user_id, device_id, ip, user_agent, last_seen_at) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (user_id, device_id, ip)
  DO UPDATE SET user_agent = excluded.user_agent, last_seen_at = excluded.last_seen_at`;

const updateDevice = `UPDATE devices SET last_seen_at = ?, last_seen_ip = ?, last_seen_user_agent = ?
  WHERE user_id = ? AND device_id = ?`;

/**
 * Each account has a row from its creation on. Therefore this statement only updates: it makes no row for a user
 * without an account.
 */
const updateActivity = `UPDATE user_activity SET last_seen_at = ? WHERE user_id = ?`;

const deleteIps = 'DELETE FROM user_ips WHERE user_id = ?';

const eraseActivity = 'UPDATE user_activity SET last_seen_at = 0 WHERE user_id = ?';

/** The last activity of a device at an address. */
interface PendingActivity extends DeviceActivity {
  userAgent: string | undefined;
  /** Milliseconds since the epoch. */
  at: number;
}

/**
 * Records when and from where each device was last used. A request updates memory only, and pending
 * activities are written together once a minute, so a crash loses at most a minute of them.
 */
export class LastSeen {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #maxAge: number;
  readonly #listeners: ActivityListener[] = [];
  /** Activity that is not on disk yet, by user. Few users have several devices or addresses, so lists are short. */
  #pending = new Map<string, PendingActivity[]>();
  #count = 0;
  #timer: Timer | undefined;
  #flushing: Promise<void> = Promise.resolve();
  /** Writes that have begun and not ended. */
  #writes = 0;
  #lastPurge = 0;

  /** @param options `user_ips_max_age`: milliseconds, null to keep addresses forever */
  constructor(
    { database, clock, log }: { database: Database; clock: Clock; log: Logger },
    options: { user_ips_max_age: number | null },
  ) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
    this.#maxAge = options.user_ips_max_age ?? Number.POSITIVE_INFINITY;
  }

  /** Calls `listener` at once for the first activity of a device at an address in each minute. */
  subscribe(listener: ActivityListener): void {
    this.#listeners.push(listener);
  }

  /**
   * Returns the users with pending activities: until these are written, the listeners receive no further activity of
   * the same devices and addresses.
   */
  recentUsers(): readonly string[] {
    return [...this.#pending.keys()];
  }

  /** Records an activity without I/O, so that it can be called for every request. */
  record(activity: DeviceActivity): void {
    const { userId, deviceId, ip, userAgent } = activity;
    const at = this.#clock.now();
    const pending = this.#pending.get(userId);
    if (pending) {
      for (const known of pending) {
        if (known.deviceId !== deviceId || known.ip !== ip) continue;
        known.at = at;
        known.userAgent = userAgent;
        return;
      }
    }
    if (pending) pending.push({ ...activity, at });
    else this.#pending.set(userId, [{ ...activity, at }]);
    this.#count += 1;
    if (this.#count >= maxPending) void this.flush();
    else this.#timer ??= this.#clock.setTimer(flushInterval, () => void this.flush());
    for (const listener of this.#listeners) listener(activity);
  }

  /**
   * Writes pending activities; resolves when they are on disk. Failures are only logged, because nothing
   * depends on these rows.
   */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const activities = [...this.#pending.values()].flat();
    this.#pending = new Map();
    this.#count = 0;
    return this.#enqueue(() => this.#write(activities));
  }

  /**
   * Drops the pending activities of a user whose account was deactivated. When a write has already begun, the rows that
   * it adds are deleted after it.
   * @param isErased whether the time of the last activity is deleted as well
   */
  forget(userId: string, isErased: boolean): void {
    this.#count -= this.#pending.get(userId)?.length ?? 0;
    this.#pending.delete(userId);
    if (this.#writes === 0) return;
    const rows = [[userId]];
    const statements = [{ sql: deleteIps, rows }, ...(isErased ? [{ sql: eraseActivity, rows }] : [])];
    void this.#enqueue(() => this.#database.batch(statements));
  }

  #enqueue(write: () => Promise<void>): Promise<void> {
    this.#writes += 1;
    this.#flushing = this.#flushing
      .then(write)
      .catch((error: unknown) =>
        this.#log.warn({ err: error }, 'Failed to write the last activity of devices'),
      )
      .finally(() => {
        this.#writes -= 1;
      });
    return this.#flushing;
  }

  async #write(seen: readonly PendingActivity[]): Promise<void> {
    if (seen.length === 0) return;
    const agentOf = ({ userAgent }: PendingActivity) => (userAgent ?? '').slice(0, maxUserAgentLength);
    const ipRows = seen.map((s) => [s.userId, s.deviceId ?? '', s.ip, agentOf(s), s.at]);
    const deviceRows = seen
      .filter((s) => s.deviceId !== undefined)
      .map((s) => [s.at, s.ip, agentOf(s), s.userId, s.deviceId!]);
    const statements = [{ sql: upsertIp, rows: ipRows }];
    if (deviceRows.length > 0) {
      const latest = new Map<string, number>();
      for (const { userId, deviceId, at } of seen) {
        if (deviceId !== undefined) latest.set(userId, Math.max(at, latest.get(userId) ?? 0));
      }
      statements.push(
        { sql: updateDevice, rows: deviceRows },
        { sql: updateActivity, rows: [...latest].map(([userId, at]) => [at, userId]) },
      );
    }
    const now = this.#clock.now();
    if (this.#maxAge < now && now - this.#lastPurge > purgeInterval) {
      this.#lastPurge = now;
      statements.push({ sql: 'DELETE FROM user_ips WHERE last_seen_at < ?', rows: [[now - this.#maxAge]] });
    }
    await this.#database.batch(statements);
  }
}
