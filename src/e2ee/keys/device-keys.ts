import { badJson, canonicalJson, isJsonObject, type JsonObject, tooLarge } from '../../protocol/index.ts';
import { coveredText } from '../signed-object.ts';

/** The object `device_keys` of a device: its identity keys (the member `keys`), algorithms and signatures. */
export interface DeviceKeys {
  /** As the client sent them. */
  readonly object: JsonObject;
  /** The part that the signatures cover (all but `signatures` and `unsigned`), as canonical JSON. */
  readonly covered: string;
}

/** Maximum number of UTF-16 units of device keys, which usually have about 500. */
const maxKeysLength = 16_384;

/**
 * Parses the object `device_keys` that a device uploads. Its signature, which may be missing, and the names of its keys
 * are not checked, and the keys may be any strings: the devices that use the keys verify them, and do not rely on the
 * server.
 * Source: client-server API, `POST /keys/upload` and "Device keys".
 * @throws MatrixError M_BAD_JSON, M_TOO_LARGE
 */
export function parseDeviceKeys(object: JsonObject, userId: string, deviceId: string): DeviceKeys {
  if (object['user_id'] !== userId) throw badJson('device_keys: user_id must be your user id');
  if (object['device_id'] !== deviceId) throw badJson('device_keys: device_id must be the id of your device');
  const covered = coveredText(object);
  if (covered.length > maxKeysLength) throw tooLarge('device_keys: the keys are too large');
  checkAlgorithms(object['algorithms']);
  checkKeys(object['keys']);
  checkSignatures(object['signatures']);
  return { object, covered };
}

function checkAlgorithms(algorithms: unknown): void {
  if (!Array.isArray(algorithms) || algorithms.some((name) => typeof name !== 'string')) {
    throw badJson('device_keys: algorithms must be a list of strings');
  }
}

function checkKeys(keys: unknown): void {
  if (!isJsonObject(keys)) throw badJson('device_keys: keys must be an object');
  for (const [name, key] of Object.entries(keys)) {
    if (typeof key !== 'string') throw badJson(`device_keys: ${name} must be a string`);
  }
}

function checkSignatures(signatures: unknown): void {
  if (signatures === undefined) return;
  const areTexts = (signaturesOfUser: unknown) =>
    isJsonObject(signaturesOfUser) &&
    Object.values(signaturesOfUser).every((signature) => typeof signature === 'string');
  if (!isJsonObject(signatures) || !Object.values(signatures).every(areTexts)) {
    throw badJson(
      'device_keys: signatures must be an object of user ids, each with an object of key ids and strings',
    );
  }
}

/** Whether two `device_keys` objects have the same identity keys (the member `keys`); other members may differ. */
export function haveSameIdentity(first: JsonObject, second: JsonObject): boolean {
  const identityKeys = ({ keys }: JsonObject) => canonicalJson(isJsonObject(keys) ? keys : {}, 'as written');
  return identityKeys(first) === identityKeys(second);
}
