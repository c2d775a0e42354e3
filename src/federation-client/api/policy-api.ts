import type { JsonObject } from '../../protocol/index.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import type { ApiRequest } from './api-request.ts';

/** Maximum bytes of a response: it contains one signature. */
const maxBody = 16 * 1024;

/**
 * Requests to policy servers. A policy server signs the events that it allows in a room. The requests are not retried,
 * because a user waits for them. They ignore the backoff, because a policy server may answer them even when it answers
 * no other requests of the federation.
 * Source: server-server API, "Policy Servers".
 */
export class PolicyApi {
  readonly #client: FederationClient;

  constructor(client: FederationClient) {
    this.#client = client;
  }

  /**
   * Requests a signature on an event.
   * @returns the unchecked response
   * @throws the errors of `FederationClient.request`
   */
  sign(server: string, pdu: JsonObject, { signal, timeout }: ApiRequest = {}): Promise<JsonObject> {
    return this.#client.request({
      destination: server,
      method: 'POST',
      path: '/_proto/policy/v1/sign',
      body: pdu,
      retry: 'none',
      ignoreBackoff: true,
      maxBody,
      ...(signal && { signal }),
      ...(timeout !== undefined && { timeout }),
    });
  }
}
