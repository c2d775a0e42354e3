import type { ConnectionOptions } from 'node:tls';

/** Connection settings of a PostgreSQL server; times in milliseconds. */
export interface PostgresOptions {
  readonly kind: 'postgres';
  /** A host name, an address, or the directory of a Unix socket. */
  readonly host?: string;
  readonly port?: number;
  readonly user?: string;
  readonly password?: string;
  readonly database?: string;
  readonly ssl?: boolean | ConnectionOptions;
  /**
   * Environment variables with the TLS settings for the tools of PostgreSQL. Source: manual of libpq, "Environment
   * Variables".
   */
  readonly toolEnvironment?: Readonly<Record<string, string>>;
  readonly applicationName?: string;
  /** Bounds of the pool for transactions and short reads. */
  readonly connections?: { readonly min: number; readonly max: number };
  /** Number of transactions after which a connection is replaced; 0 for never. */
  readonly transactionsPerConnection?: number;
  readonly connectTimeout?: number;
  /** Maximum time between two statements of a transaction. */
  readonly idleLimit?: number;
  /** Time for which the lease on writing holds without a renewal; by default 6,000. */
  readonly leaseTime?: number;
  /**
   * Maximum time that a starting process waits for the lease on writing while another process renews it, for instance a
   * process that is stopping; by default 5,000.
   */
  readonly claimTimeout?: number;
  /** Timeout of a statement of `Database.scanner()`. */
  readonly scanLimit?: number;
}
