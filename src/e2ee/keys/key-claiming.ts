import type { Clock } from '../../kernel/clock.ts';
import { isJsonObject, type JsonObject, serverOfUser } from '../../protocol/index.ts';
import { type ByUser, failureOf, type RemoteKeys, validOneTimeKeys } from '../remote-keys/remote-keys.ts';
import { ServerRequests } from '../remote-keys/server-requests.ts';
import type { LocalKeyClaims } from './local-key-claims.ts';

/** User id to device id to the algorithm of the requested key. */
export type KeyRequests = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** User id to device id to `<algorithm>:<key id>` to the key. */
type ClaimedKeys = ByUser<Record<string, JsonObject>>;

/** The response to `POST /keys/claim`. */
export interface ClaimResponse {
  readonly one_time_keys: ClaimedKeys;
  /** Errors by server name. */
  readonly failures: Record<string, JsonObject>;
}

export interface KeyClaimingDeps {
  readonly claims: LocalKeyClaims;
  readonly serverName: string;
  readonly clock: Clock;
  /** Sends requests to other servers; when absent, these requests fail with M_UNREACHABLE. */
  readonly remote: RemoteKeys | undefined;
}

/** Number of claims that are made before control returns to the event loop. */
const claimsPerTurn = 500;

/** Claims one-time keys of local and remote devices. Source: client-server API, `POST /keys/claim`. */
export class KeyClaiming {
  readonly #deps: KeyClaimingDeps;

  constructor(deps: KeyClaimingDeps) {
    this.#deps = deps;
  }

  /** @param timeout milliseconds to wait for all other servers together */
  async claim(requests: KeyRequests, timeout: number): Promise<ClaimResponse> {
    const servers = Map.groupBy(requests, ([userId]): string => serverOfUser(userId));
    const localRequests = new Map(servers.get(this.#deps.serverName));
    servers.delete(this.#deps.serverName);
    const failures: Record<string, JsonObject> = {};
    const serverRequests = new ServerRequests(this.#deps, timeout);
    const [local, answers] = await Promise.all([
      this.claimLocal(localRequests),
      serverRequests.forServers([...servers], async ([server, users]) => {
        try {
          serverRequests.countServerOrThrow();
          return await this.#claimRemote(serverRequests, server, new Map(users));
        } catch (error) {
          failures[server] = failureOf(error);
          return {};
        }
      }),
    ]);
    return { one_time_keys: Object.assign(local, ...answers) as ClaimedKeys, failures };
  }

  /** Claims keys of local users. */
  async claimLocal(requests: KeyRequests): Promise<ClaimedKeys> {
    const flatRequests = [...requests].flatMap(([userId, devices]) =>
      [...devices].map(([deviceId, algorithm]) => ({ userId, deviceId, algorithm })),
    );
    const keys = new Map<string, [deviceId: string, keyByName: Record<string, JsonObject>][]>();
    for (let start = 0; start < flatRequests.length; start += claimsPerTurn) {
      if (start > 0) await new Promise(setImmediate);
      const claimed = await Promise.all(
        flatRequests
          .slice(start, start + claimsPerTurn)
          .map(async (request) => ({ ...request, key: await this.#deps.claims.claim(request) })),
      );
      for (const { userId, deviceId, key } of claimed) {
        if (!key) continue;
        const keyByName = { [`${key.algorithm}:${key.keyId}`]: JSON.parse(key.key) as JsonObject };
        const keysOfUser = keys.get(userId);
        if (keysOfUser) keysOfUser.push([deviceId, keyByName]);
        else keys.set(userId, [[deviceId, keyByName]]);
      }
    }
    return Object.fromEntries(
      [...keys].map(([userId, keysOfUser]) => [userId, Object.fromEntries(keysOfUser)]),
    );
  }

  async #claimRemote(
    serverRequests: ServerRequests,
    server: string,
    requests: KeyRequests,
  ): Promise<ClaimedKeys> {
    const answer = await serverRequests.send((remote, request) => remote.claim(server, requests, request));
    return isJsonObject(answer) ? validOneTimeKeys(answer, requests) : {};
  }
}
