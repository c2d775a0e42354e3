import type { ConnectionOptions } from 'node:tls';

/** Where the server is and how it is used; times in milliseconds. */
export interface PostgresOptions {
  readonly kind: 'postgres';
  /** A name, an address, or the folder of a Unix socket. */
  readonly host?: string;
  readonly port?: number;
  readonly user?: string;
  readonly password?: string;
  readonly database?: string;
  readonly ssl?: boolean | ConnectionOptions;
  readonly applicationName?: string;
  /** Connections for transactions and short reads. */
  readonly connections?: { readonly min: number; readonly max: number };
  /** Transactions after which a connection is replaced; 0 for never. */
  readonly transactionsPerConnection?: number;
  readonly connectTimeout?: number;
  /** How long the work of a transaction may go without a statement. */
  readonly idleLimit?: number;
  /** How long a statement of `scanner()` may take. */
  readonly scanLimit?: number;
}
