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

/** Milliseconds between two writes. */
const flushInterval = 60_000;

/** A flush comes early when this many different sightings wait. */
const maxWaiting = 10_000;

/** Milliseconds between two rounds of forgetting. */
const forgettingInterval = 3_600_000;

const longestUserAgent = 512;

const upsertIp = `INSERT INTO user_ips (user_id, device_id, ip, user_agent, last_seen_at) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (user_id, device_id, ip)
  DO UPDATE SET user_agent = excluded.user_agent, last_seen_at = excluded.last_seen_at`;

const updateDevice = `UPDATE devices SET last_seen_at = ?, last_seen_ip = ?, last_seen_user_agent = ?
  WHERE user_id = ? AND device_id = ?`;

/** A device at an address: when it was there last, and with what. */
interface Seen extends DeviceActivity {
  userAgent: string | undefined;
  at: number;
}

/**
 * Remembers when and from where each device was used last. A request only notes it in memory; the notes are written
 * together once a minute, so a crash loses a minute of them.
 */
export class LastSeen {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #maxAge: number;
  /** By user, of whom few are seen with several devices or at several addresses within a minute. */
  #waiting = new Map<string, Seen[]>();
  #count = 0;
  #timer: Timer | undefined;
  #flushing: Promise<void> = Promise.resolve();
  #forgotten = 0;

  /** @param options `user_ips_max_age`: milliseconds, null to forget nothing */
  constructor(
    { database, clock, log }: { database: Database; clock: Clock; log: Logger },
    options: { user_ips_max_age: number | null },
  ) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
    this.#maxAge = options.user_ips_max_age ?? Number.POSITIVE_INFINITY;
  }

  /** Quick and without I/O: may be called for every request. */
  record(sighting: DeviceActivity): void {
    const { userId, deviceId, ip, userAgent } = sighting;
    const at = this.#clock.now();
    const ofUser = this.#waiting.get(userId);
    const known = ofUser?.find((seen) => seen.deviceId === deviceId && seen.ip === ip);
    if (known) {
      known.at = at;
      known.userAgent = userAgent;
      return;
    }
    if (ofUser) ofUser.push({ ...sighting, at });
    else this.#waiting.set(userId, [{ ...sighting, at }]);
    this.#count += 1;
    if (this.#count >= maxWaiting) void this.flush();
    else this.#timer ??= this.#clock.setTimer(flushInterval, () => void this.flush());
  }

  /** Writes what was noted; resolves when it is on disk. Failures are logged: nothing depends on these rows. */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const seen = [...this.#waiting.values()].flat();
    this.#waiting = new Map();
    this.#count = 0;
    this.#flushing = this.#flushing
      .then(() => this.#write(seen))
      .catch((error: unknown) => this.#log.warn({ err: error }, 'could not record when devices were used'));
    return this.#flushing;
  }

  async #write(seen: readonly Seen[]): Promise<void> {
    if (seen.length === 0) return;
    const agentOf = ({ userAgent }: Seen) => (userAgent ?? '').slice(0, longestUserAgent);
    const ipRows = seen.map((s) => [s.userId, s.deviceId ?? '', s.ip, agentOf(s), s.at]);
    const deviceRows = seen
      .filter((s) => s.deviceId !== undefined)
      .map((s) => [s.at, s.ip, agentOf(s), s.userId, s.deviceId!]);
    const statements = [{ sql: upsertIp, rows: ipRows }];
    if (deviceRows.length > 0) statements.push({ sql: updateDevice, rows: deviceRows });
    const now = this.#clock.now();
    if (this.#maxAge < now && now - this.#forgotten > forgettingInterval) {
      this.#forgotten = now;
      statements.push({ sql: 'DELETE FROM user_ips WHERE last_seen_at < ?', rows: [[now - this.#maxAge]] });
    }
    await this.#database.batch(statements);
  }
}
