import type { JsonObject } from '../../protocol/index.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import type { ApiRequest } from './api-request.ts';

/** Bytes of an answer: it holds one signature. */
const maxBody = 16 * 1024;

/**
 * What policy servers are asked. Somebody waits for it, so nothing is repeated, and what comes of it says nothing
 * about whether the server takes part in federation otherwise.
 * Source: server-server API, "Policy Servers".
 */
export class PolicyApi {
  readonly #client: FederationClient;

  constructor(client: FederationClient) {
    this.#client = client;
  }

  /** @returns whatever object the server has answered @throws as `FederationClient.request` does */
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
