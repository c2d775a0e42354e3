import { exceedsDepth, isJsonObject, type JsonObject, MatrixError } from '../../protocol/index.ts';
import { isPublicKey, signaturesBy } from './signed-object.ts';

/** How a question to another server ends when nobody answers. */
export interface RemoteRequest {
  /** Milliseconds. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/**
 * Asks other servers for the keys of their users; declared here, supplied by the federation at composition. What comes
 * back need not be what was asked for: it is checked here.
 */
export interface RemoteKeys {
  /**
   * @param users user id to device ids; none stand for all
   * @returns a body like that of server-server API, `POST /user/keys/query`
   */
  query(
    server: string,
    users: ReadonlyMap<string, readonly string[]>,
    request: RemoteRequest,
  ): Promise<JsonObject>;
  /**
   * @param wishes user id to device id to algorithm
   * @returns a body like that of server-server API, `POST /user/keys/claim`
   */
  claim(
    server: string,
    wishes: ReadonlyMap<string, ReadonlyMap<string, string>>,
    request: RemoteRequest,
  ): Promise<JsonObject>;
  /** @returns a body like that of server-server API, `GET /user/devices/{userId}` */
  devices(server: string, userId: string, request: RemoteRequest): Promise<JsonObject>;
}

/** User id to something of that user. */
export type ByUser<T = JsonObject> = Record<string, T>;

/** What is known of keys of users. */
export interface QueriedKeys {
  /** User id to device id to keys. */
  readonly device_keys: ByUser<Record<string, JsonObject>>;
  readonly master_keys: ByUser;
  readonly self_signing_keys: ByUser;
}

export const noKeys = (): QueriedKeys => ({ device_keys: {}, master_keys: {}, self_signing_keys: {} });

/** Devices that a user of another server may have; the others are as if they were not there. */
export const maxDevices = 2_000;

/** UTF-16 units of the keys of a device or of a cross-signing key, and of a one-time key, and how deep they may be. */
const [largestKeys, largestOneTimeKey, deepest] = [16_384, 4_096, 20];

/** Characters of the id or the name of a device. */
const longestText = 255;

/**
 * Those of another server's keys that were asked for and are what they claim to be; the rest is dropped. Of users whom
 * the answer does not name nothing is said, as clients take an empty list for one without devices.
 */
export function validKeys(answer: JsonObject, users: ReadonlyMap<string, readonly string[]>): QueriedKeys {
  const sound = noKeys();
  for (const [userId, wanted] of users) {
    const chosen = new Set(wanted);
    const answered = objectProperty(answer['device_keys'], userId);
    const devices = Object.entries(answered ?? {}).flatMap(([id, keys]) => {
      const isWanted = chosen.size === 0 || chosen.has(id);
      const device = isWanted && isJsonObject(keys) ? validDeviceKeys(keys, userId, id) : undefined;
      return device ? [[id, device] as const] : [];
    });
    if (answered) sound.device_keys[userId] = Object.fromEntries(devices.slice(0, maxDevices));
    for (const [section, usage] of [
      ['master_keys', 'master'],
      ['self_signing_keys', 'self_signing'],
    ] as const) {
      const key = validCrossSigningKey(objectProperty(answer[section], userId), userId, usage);
      if (key) sound[section][userId] = key;
    }
  }
  return sound;
}

/**
 * Those of another server's one-time keys that were asked for: of each device one of the right algorithm. Whether the
 * signature is right is for the client to say, who knows the device.
 */
export function validOneTimeKeys(
  answer: JsonObject,
  wishes: ReadonlyMap<string, ReadonlyMap<string, string>>,
): ByUser<Record<string, JsonObject>> {
  const sound: ByUser<Record<string, JsonObject>> = {};
  for (const [userId, devices] of wishes) {
    const found = [...devices].flatMap(([deviceId, algorithm]) => {
      const keys = objectProperty(objectProperty(answer['one_time_keys'], userId), deviceId) ?? {};
      const named = Object.entries(keys).find(([name]) => name.startsWith(`${algorithm}:`));
      const key = named && soundOneTimeKey(algorithm, named[1], userId, deviceId);
      return key === undefined ? [] : [[deviceId, { [named![0]]: key }] as const];
    });
    if (found.length > 0) sound[userId] = Object.fromEntries(found);
  }
  return sound;
}

/** How a failure of another server is told to clients. */
export function failureOf(error: unknown): JsonObject {
  if (error instanceof MatrixError) return { errcode: error.errcode, error: error.message };
  return { errcode: 'M_UNKNOWN', error: 'The server could not be reached' };
}

/**
 * The identity keys of a device of another server's user as they are given to clients, with the user's own signatures
 * only; `undefined` when they are of somebody else, or no such keys.
 */
export function validDeviceKeys(keys: JsonObject, userId: string, deviceId: string): JsonObject | undefined {
  if (keys['user_id'] !== userId || keys['device_id'] !== deviceId) return undefined;
  if (!isDeviceId(deviceId) || !isSmall(keys, largestKeys)) return undefined;
  const { algorithms } = keys;
  if (!Array.isArray(algorithms) || !algorithms.every((name) => typeof name === 'string')) return undefined;
  if (!isJsonObject(keys['keys']) || !Object.values(keys['keys']).every((key) => typeof key === 'string')) {
    return undefined;
  }
  const name = objectProperty(keys, 'unsigned')?.['device_display_name'];
  const unsigned = typeof name === 'string' ? { device_display_name: name.slice(0, longestText) } : {};
  return { ...keys, signatures: { [userId]: signaturesBy(keys, userId) }, unsigned };
}

/** As `soundDevice`, for a master or self-signing key: there is one key, named by itself. */
export function validCrossSigningKey(
  key: JsonObject | undefined,
  userId: string,
  usage: 'master' | 'self_signing',
): JsonObject | undefined {
  if (!key || key['user_id'] !== userId || !isJsonObject(key['keys']) || !isSmall(key, largestKeys)) {
    return undefined;
  }
  if (!Array.isArray(key['usage']) || !key['usage'].includes(usage)) return undefined;
  const keys = Object.entries(key['keys']);
  if (keys.length !== 1 || keys.some(([id, text]) => id !== `ed25519:${String(text)}`)) return undefined;
  const { unsigned: _unsigned, ...rest } = key;
  return { ...rest, signatures: { [userId]: signaturesBy(key, userId) } };
}

export const isDeviceId = (id: unknown): id is string =>
  typeof id === 'string' && id !== '' && id.length <= longestText && !id.includes('\0');

function soundOneTimeKey(
  algorithm: string,
  key: unknown,
  userId: string,
  deviceId: string,
): JsonObject | undefined {
  // The algorithms of the specification; a client that knows others takes an object with a key.
  if (!isJsonObject(key) || !isSmall(key, largestOneTimeKey)) {
    return algorithm === 'curve25519' && isPublicKey(key) ? (key as unknown as JsonObject) : undefined;
  }
  if (typeof key['key'] !== 'string') return undefined;
  if (algorithm !== 'signed_curve25519') return key;
  const signatures = signaturesBy(key, userId);
  if (!isPublicKey(key['key']) || !Object.hasOwn(signatures, `ed25519:${deviceId}`)) return undefined;
  return { ...key, signatures: { [userId]: signatures } };
}

function isSmall(object: JsonObject, largest: number): boolean {
  const text = JSON.stringify(object);
  return text.length <= largest && !exceedsDepth(text, deepest);
}

export function objectProperty(value: unknown, name: string): JsonObject | undefined {
  if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
  const member = value[name];
  return isJsonObject(member) ? member : undefined;
}
