import type { Clock, Timer } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { PresenceStatus } from './presence-status.ts';
import { writePresence } from './store.ts';

/** Milliseconds for which changes are collected before they are written. */
const pause = 60_000;

/**
 * Stores the presence of users, many at once and up to a minute late. After a crash clients soon report the
 * lost part again.
 */
export class PresenceWriter {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  #unwritten = new Map<string, PresenceStatus>();
  #writing: Promise<void> = Promise.resolve();
  #timer: Timer | undefined;

  constructor({ database, clock, log }: { database: Database; clock: Clock; log: Logger }) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
  }

  /** Returns a presence that is not stored yet. */
  get(userId: string): PresenceStatus | undefined {
    return this.#unwritten.get(userId);
  }

  /** Stores a presence with the next write. */
  put(userId: string, status: PresenceStatus): void {
    this.#unwritten.set(userId, status);
    this.#timer ??= this.#clock.setTimer(pause, () => {
      this.#timer = undefined;
      void this.write();
    });
  }

  /** Writes at once. Never rejects: failed writes are retried later. */
  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Writes what is not stored yet, and ends the timer. */
  async close(): Promise<void> {
    await this.write();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  async #write(): Promise<void> {
    const statuses = new Map(this.#unwritten);
    try {
      await writePresence(this.#database, statuses);
      for (const [userId, status] of statuses) {
        if (this.#unwritten.get(userId) === status) this.#unwritten.delete(userId);
      }
    } catch (error) {
      this.#log.error({ err: error }, 'Presence could not be stored');
      for (const [userId, status] of statuses) this.put(userId, this.#unwritten.get(userId) ?? status);
    }
  }
}
