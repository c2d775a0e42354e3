import { sleep, systemClock, type Timer } from '../../clock.ts';
import type { Logger } from '../../observability/logger.ts';
import { StartFailure } from '../../start-failure.ts';
import { DatabaseInUse, LeaseLost } from '../errors.ts';
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
import { FailedWithoutEffect } from './retry.ts';
import type { Session } from './session.ts';

/** Milliseconds after which a lease expires unless it is renewed. A server that starts after a crash waits up to that long. */
const defaultLeaseTime = 6_000;

/** Milliseconds to wait for a running server to stop, for instance during a restart. */
const defaultClaimTimeout = 5_000;

/** Milliseconds between two reads of another server's lease. */
const pollInterval = 100;

export interface LeaseOptions {
  /** Milliseconds after which the lease expires unless it is renewed. */
  readonly leaseTime?: number | undefined;
  /** Milliseconds to wait for a running server to stop. */
  readonly claimTimeout?: number | undefined;
  /** Name of the database in messages. */
  readonly database: string;
  /** Called once when another server has taken the lease. */
  readonly onLost: (error: Error) => void;
}

/**
 * The exclusive right to write to a PostgreSQL database (decision 0131): a row that the server renews. Every
 * transaction that writes checks the epoch of the lease, and fails when another server has taken the lease. Uses the
 * system's clock, because other processes wait for the lease to expire.
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
  readonly #isHolder: boolean;
  #isClosed = false;

  /** @param isHolder whether this process has taken the lease: it renews the lease, and releases it at the end */
  private constructor(
    pool: ConnectionPool,
    epoch: number,
    options: LeaseOptions,
    log: Logger,
    isHolder: boolean,
  ) {
    this.#pool = pool;
    this.#epoch = epoch;
    this.#time = options.leaseTime ?? defaultLeaseTime;
    this.#log = log;
    this.#onLost = options.onLost;
    this.#isHolder = isHolder;
    if (isHolder) this.#renewLater();
  }

  /**
   * Takes the lease; waits while another server's lease is about to expire or to be released.
   * @throws DatabaseInUse when another server keeps renewing the lease
   */
  static async take(pool: ConnectionPool, options: LeaseOptions, log: Logger): Promise<WriterLease> {
    const { database, leaseTime = defaultLeaseTime, claimTimeout = defaultClaimTimeout } = options;
    const began = systemClock.monotonic();
    let first: LeaseHolder | undefined;
    for (;;) {
      const holder = await pool.use(readHolder);
      if (!holder || holder.remaining <= 0) {
        const epoch = await pool.use((session) => takeLease(session, leaseTime));
        if (epoch !== undefined) return new WriterLease(pool, epoch, options, log, true);
        continue;
      }
      if (!first) log.warn({ holder }, 'Another server uses the database, waiting for it to stop');
      first ??= holder;
      // A crashed server does not renew its lease, and is waited for until the lease expires.
      const isAlive = holder.epoch !== first.epoch || holder.expiresTs !== first.expiresTs;
      if (isAlive && systemClock.monotonic() - began >= claimTimeout) throw inUse(database, holder);
      await sleep(systemClock, Math.min(pollInterval, holder.remaining));
    }
  }

  /**
   * Joins the lease of another process of the same server: this one can write until a third process takes the lease.
   * @throws StartFailure when no process has it
   */
  static async join(pool: ConnectionPool, options: LeaseOptions, log: Logger): Promise<WriterLease> {
    const holder = await pool.use(readHolder);
    if (holder && holder.remaining > 0) return new WriterLease(pool, holder.epoch, options, log, false);
    throw new StartFailure(
      `no server writes the PostgreSQL database ${options.database}: start the main process first`,
    );
  }

  /** Set once another server has taken the lease. */
  get lost(): LeaseLost | undefined {
    return this.#lost;
  }

  /**
   * Begins a transaction that can commit only while this server has the lease. The caller may send statements before
   * this method resolves, but COMMIT only afterwards.
   * @param begin the BEGIN statement
   * @throws LeaseLost when another server has the lease
   */
  async begin(session: Session, begin: string): Promise<void> {
    const begun = session.control(`${begin}; ${leaseLock}`);
    const [holds] = await Promise.all([holdsLease(session, this.#epoch), begun]);
    if (!holds) throw this.#lose();
  }

  /** Releases the lease. Must be called after the last write. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#renewing;
    if (this.#lost || !this.#isHolder) return;
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

function inUse(database: string, { host, pid, takenTs }: LeaseHolder): DatabaseInUse {
  const since = new Date(takenTs).toISOString();
  return new DatabaseInUse(
    `the PostgreSQL database ${database} is in use by another server: process ${pid} on ${host}, since ${since}`,
  );
}

const reasonOf = (error: unknown) => (error instanceof FailedWithoutEffect ? error.reason : error);
