import type { JsonObject } from '../../protocol/index.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import { type FederationRequest, federationPath } from '../requests/request.ts';
import type { ApiRequest } from './api-request.ts';

/** Bytes of an answer with the keys of many users, with one-time keys, and with the devices of one user. */
const maxBody = {
  query: 8 * 1024 * 1024,
  claim: 4 * 1024 * 1024,
  devices: 4 * 1024 * 1024,
} as const;

/**
 * What other servers are asked about the keys of their users. Somebody waits for most of it, so nothing is repeated.
 * What comes back is an object, and nothing else was checked.
 * Source: server-server API, "End-to-End Encryption" and "Device Management".
 */
export class KeysApi {
  readonly #client: FederationClient;

  constructor(client: FederationClient) {
    this.#client = client;
  }

  /**
   * The identity keys of devices, and cross-signing keys.
   * @param users user id to device ids; none stand for all
   * @throws as `FederationClient.request` does, also the other methods
   */
  query(
    server: string,
    users: ReadonlyMap<string, readonly string[]>,
    request?: ApiRequest,
  ): Promise<JsonObject> {
    return this.#ask(server, request, {
      method: 'POST',
      path: '/_proto/federation/v1/user/keys/query',
      body: { device_keys: Object.fromEntries(users) },
      maxBody: maxBody.query,
    });
  }

  /** One-time keys. @param wishes user id to device id to algorithm */
  claim(
    server: string,
    wishes: ReadonlyMap<string, ReadonlyMap<string, string>>,
    request?: ApiRequest,
  ): Promise<JsonObject> {
    const entries = [...wishes].map(([userId, devices]) => [userId, Object.fromEntries(devices)] as const);
    return this.#ask(server, request, {
      method: 'POST',
      path: '/_proto/federation/v1/user/keys/claim',
      body: { one_time_keys: Object.fromEntries(entries) },
      maxBody: maxBody.claim,
    });
  }

  /** All devices of a user, and the place of that list in the sequence of its changes. */
  devices(server: string, userId: string, request?: ApiRequest): Promise<JsonObject> {
    const path = federationPath`/_proto/federation/v1/user/devices/${userId}`;
    return this.#ask(server, request, { method: 'GET', path, maxBody: maxBody.devices });
  }

  #ask(
    destination: string,
    { signal, timeout }: ApiRequest = {},
    rest: Pick<FederationRequest, 'method' | 'path' | 'body' | 'maxBody'>,
  ): Promise<JsonObject> {
    return this.#client.request({
      destination,
      retry: 'none',
      ...rest,
      ...(signal && { signal }),
      ...(timeout !== undefined && { timeout }),
    });
  }
}
