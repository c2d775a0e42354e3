import type { Usage } from './load/process-usage.ts';

/**
 * The kinds of servers that the bench measures:
 * - `hearth`: built and started by the bench;
 * - `ceiling`: a server that does only the minimal work for one event: parse, sign and store it;
 * - `peer`: a running homeserver, given with `--peer`.
 */
export type TargetKind = 'hearth' | 'ceiling' | 'peer';

/** A server under load. */
export interface Target {
  readonly kind: TargetKind;
  /** Without a trailing slash. */
  readonly url: string;
  /** The shared secret for `/_synapse/admin/v1/register`. */
  readonly registrationSecret: string;
  /** Absent for a server that the bench did not start. */
  readonly process?: OwnProcess;
  /**
   * Resources that the server's processes have used since they started; `undefined` when they are unknown.
   */
  usage(): Usage | undefined;
  /** Stops what the bench has started, and removes its data. */
  close(): Promise<void>;
}

/** A server that the bench has started. */
export interface OwnProcess {
  /** Restarts the server on the same data. @returns milliseconds from start to first response */
  restart(): Promise<number>;
  /** Returns the size of the database in bytes after checkpoints; may restart the server. */
  databaseBytes(): Promise<number>;
  /** Runs statements on the database; restarts the server. */
  runSql(statements: readonly string[]): Promise<void>;
}
