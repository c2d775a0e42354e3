import type { Requester } from '../kernel/http/index.ts';

/**
 * Requires the user to authenticate again before an action that a stolen access token must not suffice for.
 * The accounts slice implements it.
 */
export interface Reauthentication {
  /**
   * Carries out an action when the user has authenticated, and returns the result of the action. The result must be
   * JSON. A repeated request receives the same result without another run.
   * @throws MatrixError 401 with the flows (client-server API, "User-Interactive Authentication API"); the errors of
   * the action
   */
  confirm<T>(request: Confirmation, action: () => Promise<T>): Promise<T>;
}

export interface Confirmation {
  readonly requester: Requester;
  /**
   * The operation with its parameters, for instance `DELETE /devices/ABC`: the confirmation is valid for it
   * only.
   */
  readonly operation: string;
  /** The request body: its member `auth` is for the authentication. */
  readonly body: unknown;
  readonly ip: string;
}
