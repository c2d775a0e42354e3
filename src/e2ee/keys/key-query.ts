import type { Devices } from '../../devices/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database, Reader } from '../../kernel/database/index.ts';
import { mapConcurrently } from '../../kernel/map-concurrently.ts';
import { isJsonObject, type JsonObject, limitExceeded, serverOfUser } from '../../protocol/index.ts';
import { chooseUsers } from '../chosen-users.ts';
import {
  type ByUser,
  failureOf,
  noKeys,
  type QueriedKeys,
  type RemoteKeys,
  validKeys,
} from '../remote-keys/remote-keys.ts';
import { ServerRequests } from '../remote-keys/server-requests.ts';
import type { RemoteDeviceLists, StoredLists } from '../remote-lists/remote-device-lists.ts';
import type { RemoteListWithDevices } from '../remote-lists/remote-list.ts';
import type { E2eeTables } from '../tables.ts';
import { readCrossSigningKeysOf } from './cross-signing-key-store.ts';
import { keyBytesOf, readDeviceKeysOf } from './device-key-store.ts';
import { readUserSignatures } from './user-signatures.ts';

/** User id to requested device ids; an empty list requests all devices. */
export type RequestedDevices = ReadonlyMap<string, readonly string[]>;

/** The response to `POST /keys/query`. */
export interface QueryResponse extends QueriedKeys {
  /** The user-signing key of the requesting user. */
  readonly user_signing_keys: ByUser;
  /**
   * Errors by the names of servers that were not asked or gave no valid response, or whose keys would make the response
   * too large.
   */
  readonly failures: Record<string, JsonObject>;
}

export interface KeyQueryDeps {
  readonly database: Database;
  readonly devices: Devices;
  readonly serverName: string;
  readonly clock: Clock;
  /** Sends requests to other servers; when absent, these requests fail with M_UNREACHABLE. */
  readonly remote: RemoteKeys | undefined;
  /** Stored lists of remote users; when absent, each query for remote users sends a request to their server. */
  readonly lists?: RemoteDeviceLists | undefined;
}

/** Keys of users of one remote server. */
export interface RemoteKeysResult {
  readonly keys: QueriedKeys;
  /** The error when the server was not asked or gave no valid response, or when its keys would make the response too large. */
  readonly failure: JsonObject | undefined;
}

/** Maximum number of remote users in one request. */
const usersPerBatch = 500;

/** Maximum number of requests to one server at the same time. */
const maxConcurrentBatches = 2;

/**
 * The failure for a server when the keys of its users would make the response too large. Clients repeat the query for
 * fewer users.
 */
const tooManyKeys = () => failureOf(limitExceeded(60_000));

/** Returns the keys of devices and users. Source: client-server API, `POST /keys/query`. */
export class KeyQuery {
  readonly #deps: KeyQueryDeps;

  constructor(deps: KeyQueryDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the keys of users and their devices.
   * @param viewer the requesting user
   * @param timeout milliseconds to wait for other servers
   */
  async query(viewer: string, requested: RequestedDevices, timeout: number): Promise<QueryResponse> {
    const { serverName } = this.#deps;
    const isLocal = ([userId]: readonly [string, unknown]) => serverOfUser(userId) === serverName;
    const { local = [], remote = [] } = Object.groupBy(requested, (entry) =>
      isLocal(entry) ? 'local' : 'remote',
    );
    const [answers, { keys: localKeys, leftOut }] = await Promise.all([
      this.queryServers(new Map(remote), timeout),
      this.#readLocal(new Map(local), true),
    ]);
    const failures: Record<string, JsonObject> = {};
    if (leftOut.size > 0) failures[serverName] = tooManyKeys();
    for (const [server, { failure }] of answers) if (failure) failures[server] = failure;
    const response = merge([localKeys, ...[...answers.values()].map(({ keys }) => keys)]);
    await this.#addViewerSignatures(viewer, response.master_keys);
    return { ...response, user_signing_keys: await this.#userSigningKey(viewer, requested), failures };
  }

  /**
   * Returns the keys of local users. Leaves out users whose keys would make the response too large.
   * @param withNames whether to add the display names of the devices; not every server may receive them
   */
  async queryLocal(requested: RequestedDevices, withNames = true): Promise<QueriedKeys> {
    return (await this.#readLocal(requested, withNames)).keys;
  }

  async #readLocal(
    requested: RequestedDevices,
    withNames: boolean,
  ): Promise<{ readonly keys: QueriedKeys; readonly leftOut: ReadonlySet<string> }> {
    const keys = noKeys();
    const userIds = [...requested.keys()];
    const { batches, leftOut } = chooseUsers(userIds, await keyBytesOf(this.#reader, userIds));
    for (const [index, batch] of batches.entries()) {
      if (index > 0) await new Promise(setImmediate);
      await this.#addLocal(keys, batch, requested, withNames);
    }
    return { keys, leftOut };
  }

  /**
   * Returns validated keys of users of other servers, by server. The keys of users with a current stored device list
   * come from the list; the keys of all other users are requested from their servers, a few servers at a time. When a
   * server does not answer, its result has no entry for the users without a current list: clients would take an
   * outdated list for complete and drop devices that are missing in it.
   * @param timeout milliseconds for all servers together
   */
  async queryServers(requested: RequestedDevices, timeout: number): Promise<Map<string, RemoteKeysResult>> {
    const { lists } = this.#deps;
    const { lists: storedLists, leftOut } = (await lists?.read([...requested.keys()])) ?? noLists;
    const serverRequests = new ServerRequests(this.#deps, timeout);
    const servers = [...Map.groupBy(requested, ([userId]): string => serverOfUser(userId))];
    const results = await serverRequests.forServers(servers, async ([server, users]) => {
      const currentLists = users
        .flatMap(([userId]) => storedLists.get(userId) ?? [])
        .filter(({ stale }) => !stale);
      const keys = keysOf(currentLists, requested);
      const failure = users.some(([userId]) => leftOut.has(userId)) ? tooManyKeys() : undefined;
      const usersToQuery = users.filter(
        ([userId]) => !leftOut.has(userId) && storedLists.get(userId)?.stale !== false,
      );
      if (usersToQuery.length === 0) return [server, { keys, failure }] as const;
      const result = await this.#queryRemote(serverRequests, server, usersToQuery, keys);
      return [server, { ...result, failure: result.failure ?? failure }] as const;
    });
    return new Map(results);
  }

  /** Requests the keys of users from their server. @returns the stored keys, and the requested keys unless the request fails */
  async #queryRemote(
    serverRequests: ServerRequests,
    server: string,
    users: readonly (readonly [userId: string, deviceIds: readonly string[]])[],
    storedKeys: QueriedKeys,
  ): Promise<RemoteKeysResult> {
    const { lists } = this.#deps;
    const userIds = users.map(([userId]) => userId);
    try {
      serverRequests.countServerOrThrow();
      await lists?.recordRemoteQuery(userIds);
      const answers = await requestInBatches(serverRequests, server, users);
      await lists?.fetchMissing(userIds);
      return { keys: merge([storedKeys, ...answers]), failure: undefined };
    } catch (error) {
      return { keys: storedKeys, failure: failureOf(error) };
    }
  }

  async #addLocal(
    response: QueriedKeys,
    userIds: readonly string[],
    requested: RequestedDevices,
    withNames: boolean,
  ): Promise<void> {
    const { devices } = this.#deps;
    const [deviceKeys, crossSigningKeys, names] = await Promise.all([
      readDeviceKeysOf(this.#reader, userIds),
      readCrossSigningKeysOf(this.#reader, userIds),
      devices.names(userIds),
    ]);
    const devicesByUser = new Map(
      userIds.map((userId) => [userId, [] as [deviceId: string, keys: JsonObject][]]),
    );
    const chosenIds = new Map(userIds.map((userId) => [userId, new Set(requested.get(userId))]));
    for (const { userId, deviceId, keys } of deviceKeys) {
      const ids = chosenIds.get(userId);
      if (ids?.size && !ids.has(deviceId)) continue;
      // On PostgreSQL keys may have been uploaded while their device was deleted.
      if (!names.get(userId)?.has(deviceId)) continue;
      const name = withNames ? names.get(userId)?.get(deviceId) : undefined;
      const unsigned = name === undefined ? undefined : { unsigned: { device_display_name: name } };
      devicesByUser.get(userId)?.push([deviceId, { ...(JSON.parse(keys) as JsonObject), ...unsigned }]);
    }
    for (const [userId, entries] of devicesByUser) response.device_keys[userId] = Object.fromEntries(entries);
    for (const [userId, keys] of crossSigningKeys) {
      const [master, selfSigning] = [keys.get('master'), keys.get('self_signing')];
      if (master) response.master_keys[userId] = master.object;
      if (selfSigning) response.self_signing_keys[userId] = selfSigning.object;
    }
  }

  /** Adds the viewer's signatures of other users' master keys. Only the viewer may see these signatures. */
  async #addViewerSignatures(viewer: string, masterKeys: ByUser): Promise<void> {
    const signatures = await readUserSignatures(this.#reader, viewer, Object.keys(masterKeys));
    for (const { targetUserId, targetKey, keyId, signature } of signatures) {
      const key = masterKeys[targetUserId];
      if (!key || !isJsonObject(key['keys']) || !Object.hasOwn(key['keys'], `ed25519:${targetKey}`)) continue;
      const otherSignatures = isJsonObject(key.signatures) ? key.signatures : {};
      masterKeys[targetUserId] = {
        ...key,
        signatures: { ...otherSignatures, [viewer]: { [keyId]: signature } },
      };
    }
  }

  async #userSigningKey(viewer: string, requested: RequestedDevices): Promise<ByUser> {
    if (!requested.has(viewer)) return {};
    const keys = (await readCrossSigningKeysOf(this.#reader, [viewer])).get(viewer);
    const key = keys?.get('user_signing');
    return key ? { [viewer]: key.object } : {};
  }

  get #reader(): Reader<E2eeTables> {
    return this.#deps.database.reader<E2eeTables>();
  }
}

const noLists: StoredLists = { lists: new Map(), leftOut: new Set() };

function requestInBatches(
  serverRequests: ServerRequests,
  server: string,
  users: readonly (readonly [userId: string, deviceIds: readonly string[]])[],
): Promise<QueriedKeys[]> {
  const batches = Array.from({ length: Math.ceil(users.length / usersPerBatch) }, (_, batch) =>
    users.slice(batch * usersPerBatch, (batch + 1) * usersPerBatch),
  );
  return serverRequests.send((remote, request) =>
    mapConcurrently(batches, maxConcurrentBatches, async (batch) => {
      const requested = new Map(batch);
      return validKeys(await remote.query(server, requested, request), requested);
    }),
  );
}

function keysOf(lists: readonly RemoteListWithDevices[], requested: RequestedDevices): QueriedKeys {
  const response = noKeys();
  for (const { userId, devices, masterKey, selfSigningKey } of lists) {
    const chosenIds = new Set(requested.get(userId));
    const entries = [...devices].filter(([deviceId]) => chosenIds.size === 0 || chosenIds.has(deviceId));
    response.device_keys[userId] = Object.fromEntries(entries);
    if (masterKey) response.master_keys[userId] = masterKey;
    if (selfSigningKey) response.self_signing_keys[userId] = selfSigningKey;
  }
  return response;
}

function merge(answers: readonly QueriedKeys[]): QueriedKeys {
  const merged = noKeys();
  for (const response of answers) {
    for (const section of ['device_keys', 'master_keys', 'self_signing_keys'] as const) {
      Object.assign(merged[section], response[section]);
    }
  }
  return merged;
}
