import type { JsonObject } from '../../protocol/index.ts';

/** How long a request may take, and what gives it up. */
export interface RemoteRequest {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds. */
  readonly timeout?: number | undefined;
}

/** The way to policy servers, as rooms need it. */
export interface PolicyPeers {
  /**
   * Asks for a signature. Source: server-server API, `POST /_matrix/policy/v1/sign`.
   * @returns what the server has answered: signatures by server and key id, if it is as it should be
   * @throws when the server can not be asked, or refuses
   */
  sign(server: string, pdu: JsonObject, request?: RemoteRequest): Promise<JsonObject>;
}
