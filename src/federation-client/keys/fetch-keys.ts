import { isJsonObject, type JsonObject, VerifyKey, verifyJson } from '../../protocol/index.ts';
import type { FederationClientConfig } from '../config.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import { type KeyResponse, readKeyResponse } from './key-response.ts';
import type { WantedKey } from './wanted-key.ts';

/** Maximum bytes of a response with the keys of one server. */
const ownerMaxBody = 128 * 1024;

/** Maximum bytes of a response with the keys of many servers. */
const notaryMaxBody = 16 * 1024 * 1024;

/** Milliseconds until a request to the owner of keys fails. */
const ownerTimeout = 10_000;

/** Milliseconds until a request to a notary fails. */
const notaryTimeout = 20_000;

/** Maximum servers in one request to a notary. */
const maxServers = 250;

export type KeyServer = FederationClientConfig['trusted_key_servers'][number];

/**
 * Fetches the keys of a server from the server itself, ignoring its backoff: the caller has just received a
 * request from it, or needs the keys to continue.
 * @param now milliseconds since the epoch
 * @returns `undefined` when the response is not signed correctly, or is invalid otherwise
 * @throws FederationError; MatrixError M_FORBIDDEN when this server does not federate with that server
 */
export async function fetchFromOwner(
  requests: FederationClient,
  serverName: string,
  now: number,
): Promise<KeyResponse | undefined> {
  const answer = await requests.request({
    destination: serverName,
    method: 'GET',
    path: '/_proto/key/v2/server',
    retry: 'none',
    ignoreBackoff: true,
    timeout: ownerTimeout,
    maxBody: ownerMaxBody,
  });
  return readKeyResponse(answer, now, serverName);
}

/**
 * Fetches keys from a notary, a server that passes on the keys of other servers. Ignores responses that lack a
 * signature by the notary's configured keys, or by the owner of the keys.
 * Source: server-server API, "Querying Keys Through Another Server".
 */
export async function fetchFromNotary(
  requests: FederationClient,
  notary: KeyServer,
  wantedKeys: readonly WantedKey[],
  now: number,
): Promise<KeyResponse[]> {
  const wantedByServer = Map.groupBy(wantedKeys, ({ serverName }) => serverName);
  const validResponses: KeyResponse[] = [];
  for (const servers of batches([...wantedByServer.keys()])) {
    const answer = await requests.request({
      destination: notary.server_name,
      method: 'POST',
      path: '/_proto/key/v2/query',
      body: { server_keys: criteriaOf(servers.map((server) => wantedByServer.get(server)!)) },
      retry: 'none',
      timeout: notaryTimeout,
      maxBody: notaryMaxBody,
    });
    const responses = Array.isArray(answer['server_keys']) ? answer['server_keys'] : [];
    for (const json of responses as unknown[]) {
      if (!isJsonObject(json) || !isSignedByNotary(json, notary)) continue;
      const response = readKeyResponse(json, now);
      if (response !== undefined && wantedByServer.has(response.serverName)) validResponses.push(response);
    }
  }
  return validResponses;
}

const batches = (servers: readonly string[]) =>
  Array.from({ length: Math.ceil(servers.length / maxServers) }, (_, index) =>
    servers.slice(index * maxServers, (index + 1) * maxServers),
  );

/** Returns the member `server_keys` of a query. @param keysOfServers the keys that are wanted of each server */
function criteriaOf(keysOfServers: readonly (readonly WantedKey[])[]): JsonObject {
  return Object.fromEntries(
    keysOfServers.map((wantedKeys) => [
      wantedKeys[0]!.serverName,
      Object.fromEntries(
        wantedKeys.map(({ keyId, validUntil }) => [keyId, { minimum_valid_until_ts: validUntil }]),
      ),
    ]),
  );
}

/**
 * Reports whether one of the notary's configured keys has signed a response. Without configured keys, every response
 * is accepted, because TLS proves the identity of the notary, as far as certificates are verified.
 */
function isSignedByNotary(json: JsonObject, { server_name, verify_keys }: KeyServer): boolean {
  if (verify_keys === null || Object.keys(verify_keys).length === 0) return true;
  return verifyJson(json, server_name, (keyId) => {
    const text = Object.hasOwn(verify_keys, keyId) ? verify_keys[keyId] : undefined;
    return text === undefined ? undefined : VerifyKey.fromBase64(text);
  });
}
