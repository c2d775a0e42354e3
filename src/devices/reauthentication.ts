import type { Requester } from '../kernel/http/index.ts';

/**
 * Asks the user to prove who they are before something that a stolen access token must not do. Supplied by the
 * accounts slice at composition.
 */
export interface Reauthentication {
  /**
   * Resolves when the user has proven it.
   * @throws MatrixError 401 with the flows to go through (client-server API, "User-Interactive Authentication API")
   */
  confirm(request: Confirmation): Promise<void>;
}

export interface Confirmation {
  readonly requester: Requester;
  /** What is to be done, with its parameters, for instance `DELETE /devices/ABC`: the proof is good for this only. */
  readonly operation: string;
  /** The request's body; its member `auth` is the proof. */
  readonly body: unknown;
  readonly ip: string;
}
