import type { Devices } from '../../devices/index.ts';
import type { Database, Reader } from '../../kernel/database/index.ts';
import { isJsonObject, type JsonObject, MatrixError, serverOfUser } from '../../protocol/index.ts';
import { readCrossSigningKeysOf } from '../cross-signing/store.ts';
import { readUserSignatures } from '../cross-signing/user-signatures.ts';
import type { E2eeTables } from '../tables.ts';
import { readDeviceKeysOf } from './device-key-store.ts';
import {
  type ByUser,
  failureOf,
  noKeys,
  type QueriedKeys,
  type RemoteKeys,
  soundKeys,
} from './remote-keys.ts';

/** User id to the ids of the devices that are wanted; none stand for all. */
export type WantedDevices = ReadonlyMap<string, readonly string[]>;

/** The answer to `POST /keys/query`. */
export interface QueryAnswer extends QueriedKeys {
  /** The user-signing key of the user who asks. */
  readonly user_signing_keys: ByUser;
  /** By the name of the server that could not be asked. */
  readonly failures: Record<string, JsonObject>;
}

export interface KeyQueryDeps {
  readonly database: Database;
  readonly devices: Devices;
  readonly serverName: string;
  /** Without it, servers are answered for as unreachable. */
  readonly remote: RemoteKeys | undefined;
}

/** How many users are looked up before other requests get their turn. */
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
  async query(viewer: string, wanted: WantedDevices, timeout: number): Promise<QueryAnswer> {
    const servers = Map.groupBy(wanted, ([userId]): string => serverOfUser(userId));
    const local = new Map(servers.get(this.#deps.serverName));
    servers.delete(this.#deps.serverName);
    const failures: Record<string, JsonObject> = {};
    const answers = await Promise.all([
      this.local(local),
      ...[...servers].map(async ([server, users]) => {
        try {
          return await this.remote(server, new Map(users), timeout);
        } catch (error) {
          failures[server] = failureOf(error);
          return noKeys();
        }
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
  async local(wanted: WantedDevices, withNames = true): Promise<QueriedKeys> {
    const answer = noKeys();
    const userIds = [...wanted.keys()];
    for (let start = 0; start < userIds.length; start += usersAtOnce) {
      if (start > 0) await new Promise(setImmediate);
      await this.#addLocal(answer, userIds.slice(start, start + usersAtOnce), wanted, withNames);
    }
    return answer;
  }

  /** The keys of users of another server, checked. Rejects when it can not be asked. */
  async remote(server: string, wanted: WantedDevices, timeout: number): Promise<QueriedKeys> {
    if (!this.#deps.remote) throw new MatrixError(503, 'M_UNREACHABLE', 'This server does not federate');
    return soundKeys(await this.#deps.remote.query(server, wanted, timeout), wanted);
  }

  async #addLocal(
    answer: QueriedKeys,
    userIds: readonly string[],
    wanted: WantedDevices,
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

  async #userSigningKey(viewer: string, wanted: WantedDevices): Promise<ByUser> {
    if (!wanted.has(viewer)) return {};
    const keys = (await readCrossSigningKeysOf(this.#reader, [viewer])).get(viewer);
    const key = keys?.get('user_signing');
    return key ? { [viewer]: key.object } : {};
  }

  get #reader(): Reader<E2eeTables> {
    return this.#deps.database.reader<E2eeTables>();
  }
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
