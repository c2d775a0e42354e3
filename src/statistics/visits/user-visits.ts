import type { DeviceActivity } from '../../devices/index.ts';
import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { dayOf } from '../utc-days.ts';
import { type ClientKind, clientKind } from './client-kind.ts';

export interface UserVisitsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly caches: CacheRegistry;
}

/** The last day with recorded visits of one user, and the kinds of clients on that day. */
interface RecordedVisits {
  readonly day: number;
  readonly clients: Set<ClientKind>;
}

/**
 * Maximum number of pending visits. When it is reached, they are written at once. While they cannot be written, because
 * the last write failed or still runs, further visits are not recorded.
 */
const maxPending = 10_000;

/** Milliseconds between two writes. */
const flushInterval = 60_000;

const insert = 'INSERT INTO user_visits (day, user_id, client) VALUES (?, ?, ?) ON CONFLICT DO NOTHING';
const remove = 'DELETE FROM user_visits WHERE user_id = ?';

/**
 * Records the days when local users sent requests: one row per user, day and kind of client, written once a minute. A
 * crash loses at most the rows of the last minute.
 */
export class UserVisits {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Recorded visits by user. */
  readonly #recorded: Cache<string, RecordedVisits>;
  #pending: [day: number, userId: string, client: string][] = [];
  /** Users whose rows are to be deleted after the visits that are being written. */
  #forgotten = new Set<string>();
  #timer: Timer | undefined;
  #flushing: Promise<void> = Promise.resolve();
  #isWriting = false;
  /** Whether the last write failed. */
  #isFailing = false;

  constructor({ database, clock, log, caches }: UserVisitsDeps) {
    this.#recorded = caches.create('user_visits', { size: 20_000, maxBytes: 4 * MiB, sizeOf: () => 200 });
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
  }

  /** Records a request without I/O. */
  record({ userId, userAgent }: DeviceActivity): void {
    const today = dayOf(this.#clock.now());
    const client = clientKind(userAgent);
    const recorded = this.#recorded.get(userId);
    if (recorded?.day === today && recorded.clients.has(client)) return;
    this.#flushLater();
    // The visit is not recorded now: a later request of the user on this day records it.
    if (this.#pending.length >= maxPending) return;
    if (recorded?.day === today) recorded.clients.add(client);
    else this.#recorded.set(userId, { day: today, clients: new Set([client]) });
    this.#pending.push([today, userId, client]);
    const mayWrite = !this.#isFailing && !this.#isWriting;
    if (mayWrite && this.#pending.length >= maxPending) void this.flush();
  }

  /**
   * Drops the visits of a user whose account was deactivated. The rows are deleted although another slice has done so,
   * because a write of visits that has begun may add them again.
   */
  forget(userId: string): void {
    this.#recorded.delete(userId);
    this.#pending = this.#pending.filter(([, visitor]) => visitor !== userId);
    this.#forgotten.add(userId);
    this.#flushLater();
  }

  /**
   * Writes pending visits. Resolves when they are on disk or the write has failed. After a failure, the newest
   * `maxPending` visits stay pending and are written with the next ones.
   */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#flushing = this.#flushing.then(() => this.#write());
    return this.#flushing;
  }

  #flushLater(): void {
    this.#timer ??= this.#clock.setTimer(flushInterval, () => void this.flush());
  }

  async #write(): Promise<void> {
    const rows = this.#pending;
    const forgotten = [...this.#forgotten];
    const statements = [
      { sql: insert, rows },
      { sql: remove, rows: forgotten.map((userId) => [userId]) },
    ].filter((statement) => statement.rows.length > 0);
    if (statements.length === 0) return;
    this.#pending = [];
    this.#forgotten.clear();
    this.#isWriting = true;
    try {
      await this.#database.batch(statements);
      this.#isFailing = false;
    } catch (error) {
      this.#log.warn({ err: error }, 'Failed to write the visits of users');
      this.#isFailing = true;
      this.#pending = [...rows, ...this.#pending].slice(-maxPending);
      for (const userId of forgotten) this.#forgotten.add(userId);
    } finally {
      this.#isWriting = false;
    }
  }
}
