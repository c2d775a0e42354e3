import { type ClientBase, Pool, type PoolConfig } from 'pg';
import type { Logger } from '../../observability/logger.ts';
import { type DatabaseTimings, type PoolUse, timed } from '../statistics.ts';
import { Disconnected, typedError } from './errors.ts';
import type { PostgresOptions } from './options.ts';
import { defaultConnections, type Purpose, poolSizes } from './pool-sizes.ts';
import { FailedWithoutEffect } from './retry.ts';
import { Session } from './session.ts';
import { StatementNames } from './statement-names.ts';
import { portableTypes } from './values.ts';

const defaults = {
  connectTimeout: 10_000,
  scanLimit: 300_000,
  /** Milliseconds after which an idle connection above the minimum is closed. */
  idleTimeout: 30_000,
};

/** A pool of connections with the same settings. */
export class ConnectionPool {
  readonly #pool: Pool;
  readonly #log: Logger;
  readonly #names = new StatementNames();
  readonly #timings: DatabaseTimings;

  constructor(options: PostgresOptions, purpose: Purpose, log: Logger, timings: DatabaseTimings = {}) {
    this.#timings = timings;
    this.#log = log;
    this.#pool = new Pool(poolConfig(options, purpose));
    this.#pool.on('error', (error) => log.warn({ err: error }, 'An idle database connection broke'));
    const settings = settingsOf(purpose, options);
    this.#pool.on('connect', (client) => {
      // A connection that breaks in use rejects its statements; without a listener, the event would be
      // thrown.
      client.on('error', () => {});
      for (const setting of settings) client.query(setting).catch(() => {});
    });
  }

  /** Runs `task` with its own connection. Rejects with `FailedWithoutEffect` when no connection is available. */
  async use<T>(task: (session: Session) => Promise<T>): Promise<T> {
    const client = await timed(this.#timings, 'wait', () => this.#pool.connect()).catch((error) => {
      throw new FailedWithoutEffect(typedError(error), typedError(error));
    });
    let broken = false;
    try {
      return await task(new Session(client, this.#names));
    } catch (error) {
      broken = (error instanceof FailedWithoutEffect ? error.reason : error) instanceof Disconnected;
      throw error;
    } finally {
      client.release(broken || midTransaction(client));
    }
  }

  /**
   * Opens the minimum number of connections. They stay open. Only logs failures: missing connections are opened on
   * demand.
   */
  async openMinimum(): Promise<void> {
    const { min: length = 0 } = this.#pool.options;
    const opened = await Promise.allSettled(Array.from({ length }, () => this.#pool.connect()));
    for (const result of opened) {
      if (result.status === 'fulfilled') result.value.release();
      else this.#log.warn({ err: result.reason }, 'A database connection could not be opened');
    }
  }

  /** Connections in use and idle ones, and tasks that wait for one. */
  get occupancy(): PoolUse {
    const { totalCount, idleCount, waitingCount } = this.#pool;
    return { inUse: totalCount - idleCount, idle: idleCount, waiting: waitingCount };
  }

  /** Waits for connections in use, then closes all. */
  close(): Promise<void> {
    return this.#pool.end();
  }
}

/** Whether a failed rollback left a transaction open; such a connection must not be reused. */
function midTransaction(client: ClientBase): boolean {
  return client.getTransactionStatus() !== 'I';
}

/** Returns the statements that set up a connection: connection poolers would reject these settings as parameters. */
function settingsOf(purpose: Purpose, { scanLimit = defaults.scanLimit }: PostgresOptions): string[] {
  // Parallel workers would shorten the scan, but would take even more CPU time from other requests.
  if (purpose === 'scanning')
    return [
      'set default_transaction_read_only = on',
      `set statement_timeout = ${scanLimit}`,
      'set max_parallel_workers_per_gather = 0',
      // Compiled expressions cost more time than they save for some hundred thousand rows.
      'set jit = off',
    ];
  // As slow as autovacuum, so that the disk stays free for others.
  return purpose === 'upkeep' ? ['set vacuum_cost_delay = 2'] : [];
}

function poolConfig(options: PostgresOptions, purpose: Purpose): PoolConfig {
  const connections = options.connections ?? defaultConnections;
  const config: PoolConfig = {
    pipeline: true,
    types: portableTypes,
    application_name: options.applicationName ?? 'hearth',
    keepAlive: true,
    connectionTimeoutMillis: options.connectTimeout ?? defaults.connectTimeout,
    idleTimeoutMillis: defaults.idleTimeout,
    min: purpose === 'main' ? connections.min : 0,
    max: poolSizes(options)[purpose],
  };
  const { host, port, user, password, database, ssl, transactionsPerConnection } = options;
  if (host !== undefined) config.host = host;
  if (port !== undefined) config.port = port;
  if (user !== undefined) config.user = user;
  if (password !== undefined) config.password = password;
  if (database !== undefined) config.database = database;
  if (ssl !== undefined) config.ssl = ssl;
  if (transactionsPerConnection) config.maxUses = transactionsPerConnection;
  return config;
}
