import type { JsonObject } from '../../protocol/index.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import { type FederationRequest, federationPath } from '../requests/request.ts';
import type { ApiRequest } from './api-request.ts';

/** Maximum bytes of a response. */
const maxBody = {
  /** The device keys and cross-signing keys of many users. */
  query: 8 * 1024 * 1024,
  /** One-time keys of many devices. */
  claim: 4 * 1024 * 1024,
  /** The devices of one user. */
  devices: 4 * 1024 * 1024,
} as const;

/** Maximum number of values in a response. The keys of a device have about 15. */
const maxValues = 200_000;

/**
 * Requests for the keys of remote users. No request is retried, because clients wait for most of them.
 * Responses are JSON objects, otherwise unchecked.
 * Source: server-server API, "End-to-End Encryption" and "Device Management".
 */
export class KeysApi {
  readonly #client: FederationClient;

  constructor(client: FederationClient) {
    this.#client = client;
  }

  /**
   * Fetches device identity keys and cross-signing keys.
   * @param users user id to device ids; an empty list means all devices
   * @throws the errors of `FederationClient.request`, like all methods here
   */
  query(
    server: string,
    users: ReadonlyMap<string, readonly string[]>,
    request?: ApiRequest,
  ): Promise<JsonObject> {
    return this.#request(server, request, {
      method: 'POST',
      path: '/_proto/federation/v1/user/keys/query',
      body: { device_keys: Object.fromEntries(users) },
      maxBody: maxBody.query,
    });
  }

  /** Claims one-time keys. @param algorithms user id to device id to algorithm */
  claim(
    server: string,
    algorithms: ReadonlyMap<string, ReadonlyMap<string, string>>,
    request?: ApiRequest,
  ): Promise<JsonObject> {
    const entries = [...algorithms].map(
      ([userId, devices]) => [userId, Object.fromEntries(devices)] as const,
    );
    return this.#request(server, request, {
      method: 'POST',
      path: '/_proto/federation/v1/user/keys/claim',
      body: { one_time_keys: Object.fromEntries(entries) },
      maxBody: maxBody.claim,
    });
  }

  /** Fetches all devices of a user, with the stream id of the list. */
  devices(server: string, userId: string, request?: ApiRequest): Promise<JsonObject> {
    const path = federationPath`/_proto/federation/v1/user/devices/${userId}`;
    return this.#request(server, request, { method: 'GET', path, maxBody: maxBody.devices });
  }

  #request(
    destination: string,
    { signal, timeout, budget }: ApiRequest = {},
    parts: Pick<FederationRequest, 'method' | 'path' | 'body' | 'maxBody'>,
  ): Promise<JsonObject> {
    return this.#client.request({
      destination,
      retry: 'none',
      maxValues,
      ...parts,
      ...(signal && { signal }),
      ...(timeout !== undefined && { timeout }),
      ...(budget && { budget }),
    });
  }
}
