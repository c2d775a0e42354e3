import { invalidParam, isJsonObject, type JsonObject, tooLarge, VerifyKey } from '../../protocol/index.ts';
import { coveredText, invalidSignature, isPublicKey, isSignedBy } from './signed-object.ts';

/** The identity keys of a device, with a checked signature. */
export interface DeviceKeys {
  /** As the client sent them. */
  readonly object: JsonObject;
  /** The JSON without signatures and `unsigned`, as canonical JSON. */
  readonly covered: string;
  /** The Ed25519 key of the device. */
  readonly signingKey: VerifyKey;
}

/** Maximum of UTF-16 units of device keys, which usually have about 500. */
const maxKeysLength = 16_384;

const olm = 'm.olm.v1.curve25519-aes-sha2';

/**
 * Parses the identity keys that a device uploads and checks their signature.
 * Source: client-server API, `POST /keys/upload` and "Device keys".
 * @throws MatrixError M_INVALID_PARAM, M_INVALID_SIGNATURE, M_TOO_LARGE
 */
export function parseDeviceKeys(object: JsonObject, userId: string, deviceId: string): DeviceKeys {
  if (object['user_id'] !== userId) throw invalidParam('device_keys: user_id must be your user id');
  if (object['device_id'] !== deviceId)
    throw invalidParam('device_keys: device_id must be the id of your device');
  const covered = coveredText(object);
  if (covered.length > maxKeysLength) throw tooLarge('device_keys: the keys are too large');
  const algorithms = parseAlgorithms(object['algorithms']);
  const keys = parseKeys(object['keys'], deviceId);
  if (algorithms.includes(olm) && !keys.has(`curve25519:${deviceId}`)) {
    throw invalidParam(`device_keys: ${olm} needs a curve25519 key`);
  }
  const signingKeyId = `ed25519:${deviceId}`;
  const signingKey = VerifyKey.fromBase64(keys.get(signingKeyId) ?? '');
  if (!signingKey) throw invalidParam('device_keys: a valid ed25519 key is missing');
  if (!isSignedBy(object, userId, signingKeyId, signingKey)) {
    throw invalidSignature('device_keys: a valid signature by the ed25519 key of the device is missing');
  }
  return { object, covered, signingKey };
}

function parseAlgorithms(algorithms: unknown): readonly string[] {
  if (!Array.isArray(algorithms) || algorithms.some((name) => typeof name !== 'string')) {
    throw invalidParam('device_keys: algorithms must be a list of strings');
  }
  return algorithms as string[];
}

/** Returns the keys by name; ed25519 and curve25519 keys are well-formed. */
function parseKeys(value: unknown, deviceId: string): ReadonlyMap<string, string> {
  if (!isJsonObject(value)) throw invalidParam('device_keys: keys must be an object');
  const keys = new Map<string, string>();
  for (const [name, key] of Object.entries(value)) {
    const algorithm = name.endsWith(`:${deviceId}`) ? name.slice(0, -deviceId.length - 1) : '';
    if (algorithm === '')
      throw invalidParam(`device_keys: the key name ${name} must be <algorithm>:<your device id>`);
    if (typeof key !== 'string') throw invalidParam(`device_keys: ${name} must be a string`);
    const isKnown = algorithm === 'ed25519' || algorithm === 'curve25519';
    if (isKnown && !isPublicKey(key))
      throw invalidParam(`device_keys: ${name} is not a base64 key of 32 bytes`);
    keys.set(name, key);
  }
  return keys;
}

/** Reports whether two device keys have the same identity keys, whatever their other fields are. */
export function haveSameIdentity(one: JsonObject, other: JsonObject): boolean {
  const identity = ({ keys }: JsonObject) => coveredText(isJsonObject(keys) ? keys : {});
  return identity(one) === identity(other);
}
