import type { Usage } from './load/process-usage.ts';

/**
 * - `hearth`: started by the bench from source;
 * - `ceiling`: the least that one event costs, see `ceiling/main.ts`;
 * - `peer`: a homeserver that runs already, given with `--peer`.
 */
export type TargetKind = 'hearth' | 'ceiling' | 'peer';

/** A server under load. */
export interface Target {
  readonly kind: TargetKind;
  /** Without a slash at the end. */
  readonly url: string;
  /** For `/_synapse/admin/v1/register`. */
  readonly registrationSecret: string;
  /** Absent for a server that the bench did not start. */
  readonly process?: OwnProcess;
  /** What the server's processes have used since they started, as far as this machine tells. */
  usage(): Usage | undefined;
  /** Stops what the bench started and removes its data. */
  close(): Promise<void>;
}

export interface OwnProcess {
  /** Stops the server and starts it on the same data. @returns milliseconds from start to first answer. */
  restart(): Promise<number>;
  /** Size of the database when all is settled, in bytes; restarts the server if need be. */
  databaseBytes(): Promise<number>;
}
