import type { Devices } from '../../devices/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database, Reader } from '../../kernel/database/index.ts';
import { isJsonObject, type JsonObject, MatrixError, serverOfUser } from '../../protocol/index.ts';
import { readCrossSigningKeysOf } from '../cross-signing/store.ts';
import { readUserSignatures } from '../cross-signing/user-signatures.ts';
import type { RemoteDeviceLists } from '../remote-lists/remote-device-lists.ts';
import type { RemoteListWithDevices } from '../remote-lists/remote-list.ts';
import type { E2eeTables } from '../tables.ts';
import { readDeviceKeysOf } from './device-key-store.ts';
import {
  type ByUser,
  failureOf,
  noKeys,
  type QueriedKeys,
  type RemoteKeys,
  validKeys,
} from './remote-keys.ts';
import { withTimeout } from './timeout.ts';

/** User id to the ids of the devices that are wanted; none stand for all. */
export type RequestedDevices = ReadonlyMap<string, readonly string[]>;

/** The answer to `POST /keys/query`. */
export interface QueryResponse extends QueriedKeys {
  /** The user-signing key of the user who asks. */
  readonly user_signing_keys: ByUser;
  /** By the name of the server that could not be asked. */
  readonly failures: Record<string, JsonObject>;
}

export interface KeyQueryDeps {
  readonly database: Database;
  readonly devices: Devices;
  readonly serverName: string;
  readonly clock: Clock;
  /** Without it, servers are answered for as unreachable. */
  readonly remote: RemoteKeys | undefined;
  /** Without it, other servers are asked each time. */
  readonly lists?: RemoteDeviceLists | undefined;
}

/** What is known of the keys of users of another server. */
export interface RemoteKeysResult {
  readonly keys: QueriedKeys;
  /** Why the server could not be asked. */
  readonly failure: JsonObject | undefined;
}

/** How many users are looked up before other requests get their turn, and asked for in one request. */
const usersAtOnce = 500;

/** Finds the keys of devices and users. Source: client-server API, `POST /keys/query`. */
export class KeyQuery {
  readonly #deps: KeyQueryDeps;

  constructor(deps: KeyQueryDeps) {
    this.#deps = deps;
  }

  /**
   * @param viewer the user who asks
   * @param timeout milliseconds to wait for other servers
   */
  async query(viewer: string, wanted: RequestedDevices, timeout: number): Promise<QueryResponse> {
    const servers = Map.groupBy(wanted, ([userId]): string => serverOfUser(userId));
    const local = new Map(servers.get(this.#deps.serverName));
    servers.delete(this.#deps.serverName);
    const failures: Record<string, JsonObject> = {};
    const answers = await Promise.all([
      this.queryLocal(local),
      ...[...servers].map(async ([server, users]) => {
        const { keys, failure } = await this.queryRemote(server, new Map(users), timeout);
        if (failure) failures[server] = failure;
        return keys;
      }),
    ]);
    const answer = merge(answers);
    await this.#addOwnSignatures(viewer, answer.master_keys);
    return { ...answer, user_signing_keys: await this.#userSigningKey(viewer, wanted), failures };
  }

  /**
   * The keys of local users.
   * @param withNames adds the names of their devices, which not everybody may know
   */
  async queryLocal(wanted: RequestedDevices, withNames = true): Promise<QueriedKeys> {
    const answer = noKeys();
    const userIds = [...wanted.keys()];
    for (let start = 0; start < userIds.length; start += usersAtOnce) {
      if (start > 0) await new Promise(setImmediate);
      await this.#addLocal(answer, userIds.slice(start, start + usersAtOnce), wanted, withNames);
    }
    return answer;
  }

  /**
   * The keys of users of another server, checked: those that are kept current here, and what the server says of the
   * others. Where it does not answer, nothing is said of them: a client that was told of a list that is not current
   * would take the devices that are not in it for gone.
   * @param timeout milliseconds
   */
  async queryRemote(server: string, wanted: RequestedDevices, timeout: number): Promise<RemoteKeysResult> {
    const { lists } = this.#deps;
    const known = (await lists?.read([...wanted.keys()])) ?? new Map<string, RemoteListWithDevices>();
    const others = [...wanted].filter(([userId]) => known.get(userId)?.stale !== false);
    const current = keysOf(
      [...known.values()].filter(({ stale }) => !stale),
      wanted,
    );
    if (others.length === 0) return { keys: current, failure: undefined };
    const otherUserIds = others.map(([userId]) => userId);
    try {
      await lists?.recordRemoteQuery(otherUserIds);
      const answers = await this.#ask(server, others, timeout);
      await lists?.fetchMissing(otherUserIds);
      return { keys: merge([current, ...answers]), failure: undefined };
    } catch (error) {
      return { keys: current, failure: failureOf(error) };
    }
  }

  async #ask(
    server: string,
    users: readonly (readonly [string, readonly string[]])[],
    timeout: number,
  ): Promise<QueriedKeys[]> {
    const { remote, clock } = this.#deps;
    if (!remote) throw new MatrixError(503, 'M_UNREACHABLE', 'This server does not federate');
    const parts = Array.from({ length: Math.ceil(users.length / usersAtOnce) }, (_, part) =>
      users.slice(part * usersAtOnce, (part + 1) * usersAtOnce),
    );
    return withTimeout(clock, timeout, (signal) =>
      Promise.all(
        parts.map(async (part) => {
          const wanted = new Map(part);
          return validKeys(await remote.query(server, wanted, { timeout, signal }), wanted);
        }),
      ),
    );
  }

  async #addLocal(
    answer: QueriedKeys,
    userIds: readonly string[],
    wanted: RequestedDevices,
    withNames: boolean,
  ): Promise<void> {
    const { devices } = this.#deps;
    const [deviceKeys, crossSigningKeys, names] = await Promise.all([
      readDeviceKeysOf(this.#reader, userIds),
      readCrossSigningKeysOf(this.#reader, userIds),
      devices.names(userIds),
    ]);
    const found = new Map(userIds.map((userId) => [userId, [] as [string, JsonObject][]]));
    const chosen = new Map(userIds.map((userId) => [userId, new Set(wanted.get(userId))]));
    for (const { userId, deviceId, keys } of deviceKeys) {
      const ids = chosen.get(userId);
      if (ids?.size && !ids.has(deviceId)) continue;
      // On PostgreSQL keys may have been uploaded while their device was being deleted.
      if (!names.get(userId)?.has(deviceId)) continue;
      const name = withNames ? names.get(userId)?.get(deviceId) : undefined;
      const unsigned = name === undefined ? undefined : { unsigned: { device_display_name: name } };
      found.get(userId)?.push([deviceId, { ...(JSON.parse(keys) as JsonObject), ...unsigned }]);
    }
    for (const [userId, entries] of found) answer.device_keys[userId] = Object.fromEntries(entries);
    for (const [userId, keys] of crossSigningKeys) {
      const [master, selfSigning] = [keys.get('master'), keys.get('self_signing')];
      if (master) answer.master_keys[userId] = master.object;
      if (selfSigning) answer.self_signing_keys[userId] = selfSigning.object;
    }
  }

  /** Adds what the viewer has signed: nobody else sees it. */
  async #addOwnSignatures(viewer: string, masterKeys: ByUser): Promise<void> {
    const signatures = await readUserSignatures(this.#reader, viewer, Object.keys(masterKeys));
    for (const { targetUserId, targetKey, keyId, signature } of signatures) {
      const key = masterKeys[targetUserId];
      if (!key || !isJsonObject(key['keys']) || !Object.hasOwn(key['keys'], `ed25519:${targetKey}`)) continue;
      const others = isJsonObject(key.signatures) ? key.signatures : {};
      masterKeys[targetUserId] = { ...key, signatures: { ...others, [viewer]: { [keyId]: signature } } };
    }
  }

  async #userSigningKey(viewer: string, wanted: RequestedDevices): Promise<ByUser> {
    if (!wanted.has(viewer)) return {};
    const keys = (await readCrossSigningKeysOf(this.#reader, [viewer])).get(viewer);
    const key = keys?.get('user_signing');
    return key ? { [viewer]: key.object } : {};
  }

  get #reader(): Reader<E2eeTables> {
    return this.#deps.database.reader<E2eeTables>();
  }
}

function keysOf(lists: readonly RemoteListWithDevices[], wanted: RequestedDevices): QueriedKeys {
  const answer = noKeys();
  for (const { userId, devices, masterKey, selfSigningKey } of lists) {
    const chosen = new Set(wanted.get(userId));
    const entries = [...devices].filter(([deviceId]) => chosen.size === 0 || chosen.has(deviceId));
    answer.device_keys[userId] = Object.fromEntries(entries);
    if (masterKey) answer.master_keys[userId] = masterKey;
    if (selfSigningKey) answer.self_signing_keys[userId] = selfSigningKey;
  }
  return answer;
}

function merge(answers: readonly QueriedKeys[]): QueriedKeys {
  const merged = noKeys();
  for (const answer of answers) {
    for (const section of ['device_keys', 'master_keys', 'self_signing_keys'] as const) {
      Object.assign(merged[section], answer[section]);
    }
  }
  return merged;
}
