import { sleep, systemClock, type Timer } from '../../clock.ts';
import type { Logger } from '../../observability/logger.ts';
import { StartFailure } from '../../start-failure.ts';
import { LeaseLost } from '../errors.ts';
import type { ConnectionPool } from './connection-pool.ts';
import {
  holdsLease,
  type LeaseHolder,
  leaseLock,
  readHolder,
  releaseLease,
  renewLease,
  takeLease,
} from './lease-row.ts';
import { Undone } from './retry.ts';
import type { Session } from './session.ts';

/** Milliseconds for which the lease holds when it is not renewed: as long waits a server that starts after a crash. */
const defaultLeaseTime = 6_000;

/** Milliseconds to wait for a server that is alive but about to stop, as when it is restarted. */
const defaultClaimTimeout = 5_000;

/** Milliseconds between two looks at the lease of another server. */
const lookInterval = 100;

export interface LeaseOptions {
  /** Milliseconds. */
  readonly leaseTime?: number | undefined;
  /** Milliseconds. */
  readonly claimTimeout?: number | undefined;
  /** Names the database in messages. */
  readonly database: string;
  /** Called once when another server has taken the lease. */
  readonly onLost: (error: Error) => void;
}

/**
 * The right to write a PostgreSQL database, which one server has at a time (decision 0131). It is a row that the server
 * renews; every transaction that writes carries its epoch and fails when another server has taken it. Times are real
 * ones, whatever clock the server has: another process waits for them.
 */
export class WriterLease {
  readonly #pool: ConnectionPool;
  readonly #epoch: number;
  readonly #time: number;
  readonly #log: Logger;
  readonly #onLost: (error: Error) => void;
  #lost: LeaseLost | undefined;
  #timer: Timer | undefined;
  #renewing: Promise<void> = Promise.resolve();
  #isClosed = false;

  private constructor(pool: ConnectionPool, epoch: number, options: LeaseOptions, log: Logger) {
    this.#pool = pool;
    this.#epoch = epoch;
    this.#time = options.leaseTime ?? defaultLeaseTime;
    this.#log = log;
    this.#onLost = options.onLost;
    this.#renewLater();
  }

  /**
   * Takes the lease. Waits for one that is about to expire or to be given back.
   * @throws StartFailure when another server has it and goes on
   */
  static async take(pool: ConnectionPool, options: LeaseOptions, log: Logger): Promise<WriterLease> {
    const { database, leaseTime = defaultLeaseTime, claimTimeout = defaultClaimTimeout } = options;
    const began = systemClock.monotonic();
    let first: LeaseHolder | undefined;
    for (;;) {
      const holder = await pool.use(readHolder);
      if (!holder || holder.remaining <= 0) {
        const epoch = await pool.use((session) => takeLease(session, leaseTime));
        if (epoch !== undefined) return new WriterLease(pool, epoch, options, log);
        continue;
      }
      if (!first) log.warn({ holder }, 'Another server uses the database; waiting for it to stop');
      first ??= holder;
      // One that has crashed does not renew its lease: then it is worth waiting until that has expired.
      const isAlive = holder.epoch !== first.epoch || holder.expiresTs !== first.expiresTs;
      if (isAlive && systemClock.monotonic() - began >= claimTimeout) throw inUse(database, holder);
      await sleep(systemClock, Math.min(lookInterval, holder.remaining));
    }
  }

  /** Why this server may not write any more; `undefined` while it may. */
  get lost(): LeaseLost | undefined {
    return this.#lost;
  }

  /**
   * Begins a transaction that can only commit while this server has the lease. Costs no wait of its own: statements may
   * be sent at once, and must not be committed before this resolves.
   * @param begin the BEGIN statement
   * @throws LeaseLost when another server has the lease
   */
  async begin(session: Session, begin: string): Promise<void> {
    const begun = session.control(`${begin}; ${leaseLock}`);
    const [holds] = await Promise.all([holdsLease(session, this.#epoch), begun]);
    if (!holds) throw this.#lose();
  }

  /** Gives the lease back. To be called when nothing is written any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#renewing;
    if (this.#lost) return;
    await this.#pool
      .use((session) => releaseLease(session, this.#epoch))
      .catch((error: unknown) =>
        this.#log.warn({ err: reasonOf(error) }, 'The database lease could not be released'),
      );
  }

  #renewLater(): void {
    if (this.#isClosed || this.#lost) return;
    this.#timer = systemClock.setTimer(this.#time / 3, () => {
      this.#renewing = this.#renew().finally(() => this.#renewLater());
    });
  }

  async #renew(): Promise<void> {
    try {
      if (!(await this.#pool.use((session) => renewLease(session, this.#epoch, this.#time)))) this.#lose();
    } catch (error) {
      this.#log.warn({ err: reasonOf(error) }, 'The database lease could not be renewed');
    }
  }

  #lose(): LeaseLost {
    if (this.#lost) return this.#lost;
    this.#lost = new LeaseLost('another server has taken over the database: this one cannot write any more');
    this.#log.fatal({ err: this.#lost }, 'Another server has taken over the database');
    this.#onLost(this.#lost);
    return this.#lost;
  }
}

function inUse(database: string, { host, pid, takenTs }: LeaseHolder): StartFailure {
  const since = new Date(takenTs).toISOString();
  return new StartFailure(
    `the PostgreSQL database ${database} is in use by another server: process ${pid} on ${host}, since ${since}`,
  );
}

const reasonOf = (error: unknown) => (error instanceof Undone ? error.reason : error);
