import type { Clock, Timer } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { PresenceStatus } from './presence-status.ts';
import { writePresence } from './store.ts';

/** Milliseconds for which changes are collected before they are written. */
const pause = 60_000;

/** Writes down how present users are, many at once and a while later. What a crash loses clients soon say again. */
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

  /** What is not written yet. */
  get(userId: string): PresenceStatus | undefined {
    return this.#unwritten.get(userId);
  }

  put(userId: string, status: PresenceStatus): void {
    this.#unwritten.set(userId, status);
    this.#timer ??= this.#clock.setTimer(pause, () => {
      this.#timer = undefined;
      void this.write();
    });
  }

  /** Writes now. Never rejects: what fails is tried again later. */
  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

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
      this.#log.error({ err: error }, 'presence could not be written down');
      for (const [userId, status] of statuses) this.put(userId, this.#unwritten.get(userId) ?? status);
    }
  }
}
