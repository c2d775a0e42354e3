import { isJsonObject, type JsonObject, MatrixError } from '../../protocol/index.ts';
import { signaturesBy } from './signed-object.ts';

/**
 * Asks other servers for the keys of their users; declared here, supplied by the federation at composition. What comes
 * back need not be what was asked for: it is checked here.
 */
export interface RemoteKeys {
  /**
   * @param users user id to device ids; none stand for all
   * @param timeout in milliseconds
   * @returns a body like that of server-server API, `POST /user/keys/query`
   */
  query(server: string, users: ReadonlyMap<string, readonly string[]>, timeout: number): Promise<JsonObject>;
  /**
   * @param wishes user id to device id to algorithm
   * @returns a body like that of server-server API, `POST /user/keys/claim`
   */
  claim(
    server: string,
    wishes: ReadonlyMap<string, ReadonlyMap<string, string>>,
    timeout: number,
  ): Promise<JsonObject>;
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

/** Those of another server's keys that were asked for and are what they claim to be; the rest is dropped. */
export function soundKeys(answer: JsonObject, users: ReadonlyMap<string, readonly string[]>): QueriedKeys {
  const sound = noKeys();
  for (const [userId, wanted] of users) {
    const devices = Object.entries(memberOf(answer['device_keys'], userId) ?? {}).flatMap(([id, keys]) => {
      const isWanted = wanted.length === 0 || wanted.includes(id);
      const device = isWanted && isJsonObject(keys) ? soundDevice(keys, userId, id) : undefined;
      return device ? [[id, device] as const] : [];
    });
    sound.device_keys[userId] = Object.fromEntries(devices);
    for (const [section, usage] of [
      ['master_keys', 'master'],
      ['self_signing_keys', 'self_signing'],
    ] as const) {
      const key = soundCrossSigningKey(memberOf(answer[section], userId), userId, usage);
      if (key) sound[section][userId] = key;
    }
  }
  return sound;
}

/** Those of another server's one-time keys that were asked for: of each device one of the right algorithm. */
export function soundOneTimeKeys(
  answer: JsonObject,
  wishes: ReadonlyMap<string, ReadonlyMap<string, string>>,
): ByUser<Record<string, JsonObject>> {
  const sound: ByUser<Record<string, JsonObject>> = {};
  for (const [userId, devices] of wishes) {
    for (const [deviceId, algorithm] of devices) {
      const keys = memberOf(memberOf(answer['one_time_keys'], userId), deviceId) ?? {};
      const key = Object.entries(keys).find(([name]) => name.startsWith(`${algorithm}:`));
      if (key) sound[userId] = { ...sound[userId], [deviceId]: Object.fromEntries([key]) };
    }
  }
  return sound;
}

/** How a failure of another server is told to clients. */
export function failureOf(error: unknown): JsonObject {
  if (error instanceof MatrixError) return { errcode: error.errcode, error: error.message };
  return { errcode: 'M_UNKNOWN', error: 'The server could not be reached' };
}

function soundDevice(keys: JsonObject, userId: string, deviceId: string): JsonObject | undefined {
  if (keys['user_id'] !== userId || keys['device_id'] !== deviceId) return undefined;
  if (!Array.isArray(keys['algorithms']) || !isJsonObject(keys['keys'])) return undefined;
  const name = memberOf(keys, 'unsigned')?.['device_display_name'];
  const unsigned = typeof name === 'string' ? { device_display_name: name } : {};
  return { ...keys, signatures: { [userId]: signaturesBy(keys, userId) }, unsigned };
}

function soundCrossSigningKey(
  key: JsonObject | undefined,
  userId: string,
  usage: string,
): JsonObject | undefined {
  if (!key || key['user_id'] !== userId || !isJsonObject(key['keys'])) return undefined;
  if (!Array.isArray(key['usage']) || !key['usage'].includes(usage)) return undefined;
  const { unsigned: _unsigned, ...rest } = key;
  return { ...rest, signatures: { [userId]: signaturesBy(key, userId) } };
}

function memberOf(value: unknown, name: string): JsonObject | undefined {
  if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
  const member = value[name];
  return isJsonObject(member) ? member : undefined;
}
