import type { ResponseBudget } from '../../kernel/outbound/index.ts';
import { exceedsDepth, isJsonObject, type JsonObject, MatrixError } from '../../protocol/index.ts';
import { signaturesBy, withSignatures } from '../signed-object.ts';

/** The limits of a request to another server. */
export interface RemoteRequest {
  /** Milliseconds. */
  readonly timeout: number;
  readonly signal: AbortSignal;
  /** Limits the total cost of the responses that one request of a client causes. */
  readonly budget?: ResponseBudget;
}

/**
 * Requests the keys of remote users from their servers. Declared here, implemented by `KeysApi`.
 * The responses are not validated.
 */
export interface RemoteKeys {
  /**
   * @param users user id to device ids; an empty list requests all devices
   * @returns the body of the response to `POST /user/keys/query` of the server-server API
   */
  query(
    server: string,
    users: ReadonlyMap<string, readonly string[]>,
    request: RemoteRequest,
  ): Promise<JsonObject>;
  /**
   * @param requests user id to device id to algorithm
   * @returns the body of the response to `POST /user/keys/claim` of the server-server API
   */
  claim(
    server: string,
    requests: ReadonlyMap<string, ReadonlyMap<string, string>>,
    request: RemoteRequest,
  ): Promise<JsonObject>;
  /** @returns the body of the response to `GET /user/devices/{userId}` of the server-server API */
  devices(server: string, userId: string, request: RemoteRequest): Promise<JsonObject>;
}

/** A value for each user id. */
export type ByUser<T = JsonObject> = Record<string, T>;

/** The device keys and cross-signing keys of users. */
export interface QueriedKeys {
  /** User id to device id to keys. */
  readonly device_keys: ByUser<Record<string, JsonObject>>;
  readonly master_keys: ByUser;
  readonly self_signing_keys: ByUser;
}

export const noKeys = (): QueriedKeys => ({ device_keys: {}, master_keys: {}, self_signing_keys: {} });

/** Maximum number of devices of a remote user; further devices are ignored. */
export const maxDevices = 2_000;

/** Maximum number of UTF-16 units of device keys or a cross-signing key. */
const maxKeysLength = 16_384;

/** Maximum number of UTF-16 units of a one-time key. */
const maxOneTimeKeyLength = 4_096;

/** Maximum nesting of a key. */
const maxDepth = 20;

/** Maximum number of characters of a device id or display name. */
const maxTextLength = 255;

/**
 * Returns the requested keys of a response, as far as they are valid. Users whom the response does not name have no
 * entry, because for clients an empty entry means that the user has no devices.
 */
export function validKeys(answer: JsonObject, users: ReadonlyMap<string, readonly string[]>): QueriedKeys {
  const valid = noKeys();
  for (const [userId, requested] of users) {
    const chosenIds = new Set(requested);
    const answeredDevices = objectProperty(answer['device_keys'], userId);
    const devices = Object.entries(answeredDevices ?? {}).flatMap(([id, keys]) => {
      const isRequested = chosenIds.size === 0 || chosenIds.has(id);
      const device = isRequested && isJsonObject(keys) ? validDeviceKeys(keys, userId, id) : undefined;
      return device ? [[id, device] as const] : [];
    });
    if (answeredDevices) valid.device_keys[userId] = Object.fromEntries(devices.slice(0, maxDevices));
    for (const [section, usage] of [
      ['master_keys', 'master'],
      ['self_signing_keys', 'self_signing'],
    ] as const) {
      const key = validCrossSigningKey(objectProperty(answer[section], userId), userId, usage);
      if (key) valid[section][userId] = key;
    }
  }
  return valid;
}

/**
 * Returns the requested one-time keys in a response, one of the right algorithm for each device. The client checks the
 * signatures, because it knows the device keys.
 */
export function validOneTimeKeys(
  answer: JsonObject,
  requests: ReadonlyMap<string, ReadonlyMap<string, string>>,
): ByUser<Record<string, JsonObject>> {
  const valid: ByUser<Record<string, JsonObject>> = {};
  for (const [userId, devices] of requests) {
    const validKeysOfUser = [...devices].flatMap(([deviceId, algorithm]) => {
      const keys = objectProperty(objectProperty(answer['one_time_keys'], userId), deviceId) ?? {};
      const entry = Object.entries(keys).find(([name]) => name.startsWith(`${algorithm}:`));
      const key = entry && validOneTimeKey(algorithm, entry[1], userId, deviceId);
      return key === undefined ? [] : [[deviceId, { [entry![0]]: key }] as const];
    });
    if (validKeysOfUser.length > 0) valid[userId] = Object.fromEntries(validKeysOfUser);
  }
  return valid;
}

/** Returns an error as an entry of `failures`, the errors of other servers in a response. */
export function failureOf(error: unknown): JsonObject {
  if (error instanceof MatrixError) return { errcode: error.errcode, error: error.message };
  return { errcode: 'M_UNKNOWN', error: 'The request to the server failed' };
}

/**
 * Returns the device keys of a remote user for clients. Keeps only the user's own signatures. Returns `undefined` for
 * keys of another user or device and for malformed keys.
 */
export function validDeviceKeys(keys: JsonObject, userId: string, deviceId: string): JsonObject | undefined {
  if (keys['user_id'] !== userId || keys['device_id'] !== deviceId) return undefined;
  if (!isDeviceId(deviceId) || !isSmall(keys, maxKeysLength)) return undefined;
  const { algorithms } = keys;
  if (!Array.isArray(algorithms) || !algorithms.every((name) => typeof name === 'string')) return undefined;
  if (!isJsonObject(keys['keys']) || !Object.values(keys['keys']).every((key) => typeof key === 'string')) {
    return undefined;
  }
  const name = objectProperty(keys, 'unsigned')?.['device_display_name'];
  const unsigned = typeof name === 'string' ? { device_display_name: name.slice(0, maxTextLength) } : {};
  return { ...withSignatures({ signatures: {}, ...keys }, userId, signaturesBy(keys, userId)), unsigned };
}

/**
 * Returns a master or self-signing key of a remote user for clients. Keeps only the user's own signatures. Returns
 * `undefined` for malformed keys; a valid object has one public key, and the id of the key contains the public key
 * itself.
 */
export function validCrossSigningKey(
  key: JsonObject | undefined,
  userId: string,
  usage: 'master' | 'self_signing',
): JsonObject | undefined {
  if (!key || key['user_id'] !== userId || !isJsonObject(key['keys']) || !isSmall(key, maxKeysLength)) {
    return undefined;
  }
  if (!Array.isArray(key['usage']) || !key['usage'].includes(usage)) return undefined;
  const keys = Object.entries(key['keys']);
  if (keys.length !== 1 || keys.some(([id, text]) => id !== `ed25519:${String(text)}`)) return undefined;
  return withSignatures(key, userId, signaturesBy(key, userId));
}

export const isDeviceId = (id: unknown): id is string =>
  typeof id === 'string' && id !== '' && id.length <= maxTextLength && !id.includes('\0');

function validOneTimeKey(
  algorithm: string,
  key: unknown,
  userId: string,
  deviceId: string,
): JsonObject | undefined {
  // `signed_curve25519` and `curve25519` are the algorithms of the specification; for other algorithms, any object with
  // a key is accepted.
  if (!isJsonObject(key) || !isSmall(key, maxOneTimeKeyLength)) {
    const isText = typeof key === 'string' && key.length <= maxOneTimeKeyLength;
    return algorithm === 'curve25519' && isText ? (key as unknown as JsonObject) : undefined;
  }
  if (typeof key['key'] !== 'string') return undefined;
  if (algorithm !== 'signed_curve25519') return key;
  const signatures = signaturesBy(key, userId);
  if (!Object.hasOwn(signatures, `ed25519:${deviceId}`)) return undefined;
  return { ...key, signatures: { [userId]: signatures } };
}

function isSmall(object: JsonObject, maxLength: number): boolean {
  const text = JSON.stringify(object);
  return text.length <= maxLength && !exceedsDepth(text, maxDepth);
}

/** Returns a property of a JSON object if the value of the property is an object. */
export function objectProperty(value: unknown, name: string): JsonObject | undefined {
  if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
  const property = value[name];
  return isJsonObject(property) ? property : undefined;
}
