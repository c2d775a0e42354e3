import { isJsonObject, type JsonObject, VerifyKey, verifyJson } from '../../protocol/index.ts';
import type { FederationClientConfig } from '../config.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import { type KeyResponse, readKeyResponse } from './key-response.ts';
import type { WantedKey } from './wanted-key.ts';

/** Bytes of an answer with the keys of one server, and of one with those of many. */
const [ownerMaxBody, notaryMaxBody] = [128 * 1024, 16 * 1024 * 1024];

/** Milliseconds that there are for each. */
const [ownerTimeout, notaryTimeout] = [10_000, 20_000];

/** Servers in one question to a notary. */
const maxServers = 250;

export type KeyServer = FederationClientConfig['trusted_key_servers'][number];

/**
 * Asks a server for its keys, even one that is being left alone: who asks has just heard from it, or can not go on.
 * @param now milliseconds since the epoch
 * @returns `undefined` when the answer is not signed as it should be
 * @throws FederationError, MatrixError M_FORBIDDEN
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
 * Asks a notary for keys. What it has not signed with a key that is configured for it is passed over, and so is what
 * the owner of the keys has not signed.
 * Source: server-server API, "Querying Keys Through Another Server".
 */
export async function fetchFromNotary(
  requests: FederationClient,
  notary: KeyServer,
  wants: readonly WantedKey[],
  now: number,
): Promise<KeyResponse[]> {
  const asked = Map.groupBy(wants, ({ serverName }) => serverName);
  const found: KeyResponse[] = [];
  for (const servers of batches([...asked.keys()])) {
    const answer = await requests.request({
      destination: notary.server_name,
      method: 'POST',
      path: '/_proto/key/v2/query',
      body: { server_keys: criteriaOf(servers.map((server) => asked.get(server)!)) },
      retry: 'none',
      timeout: notaryTimeout,
      maxBody: notaryMaxBody,
    });
    const responses = Array.isArray(answer['server_keys']) ? answer['server_keys'] : [];
    for (const json of responses as unknown[]) {
      if (!isJsonObject(json) || !isSignedByNotary(json, notary)) continue;
      const response = readKeyResponse(json, now);
      if (response !== undefined && asked.has(response.serverName)) found.push(response);
    }
  }
  return found;
}

const batches = (servers: readonly string[]) =>
  Array.from({ length: Math.ceil(servers.length / maxServers) }, (_, index) =>
    servers.slice(index * maxServers, (index + 1) * maxServers),
  );

/** The wants of each server, as the body of the question has them. */
function criteriaOf(wantsByServer: readonly (readonly WantedKey[])[]): JsonObject {
  return Object.fromEntries(
    wantsByServer.map((wants) => [
      wants[0]!.serverName,
      Object.fromEntries(
        wants.map(({ keyId, validUntil }) => [keyId, { minimum_valid_until_ts: validUntil }]),
      ),
    ]),
  );
}

/** Without keys that are configured, the connection proves who answers, as far as certificates are checked. */
function isSignedByNotary(json: JsonObject, { server_name, verify_keys }: KeyServer): boolean {
  if (verify_keys === null || Object.keys(verify_keys).length === 0) return true;
  return verifyJson(json, server_name, (keyId) => {
    const text = Object.hasOwn(verify_keys, keyId) ? verify_keys[keyId] : undefined;
    return text === undefined ? undefined : VerifyKey.fromBase64(text);
  });
}
