import { invalidParam, isJsonObject, type JsonObject, tooLarge, VerifyKey } from '../../protocol/index.ts';
import { coveredText, invalidSignature, isPublicKey, isSignedBy } from './signed-object.ts';

/** The identity keys of a device, checked. */
export interface DeviceKeys {
  /** As the client sent them. */
  readonly object: JsonObject;
  /** Everything but the signatures, as canonical JSON. */
  readonly covered: string;
  /** The key with which the device signs. */
  readonly signingKey: VerifyKey;
}

/** UTF-16 units of the keys of a device; real ones have about 500. */
const largestKeys = 16_384;

const olm = 'm.olm.v1.curve25519-aes-sha2';

/**
 * Checks the identity keys that a device uploads for itself.
 * Source: client-server API, `POST /keys/upload` and "Device keys".
 * @throws MatrixError M_INVALID_PARAM, M_INVALID_SIGNATURE, M_TOO_LARGE
 */
export function parseDeviceKeys(object: JsonObject, userId: string, deviceId: string): DeviceKeys {
  if (object['user_id'] !== userId) throw invalidParam('device_keys: this is not your user id');
  if (object['device_id'] !== deviceId) throw invalidParam('device_keys: this is not the id of your device');
  const covered = coveredText(object);
  if (covered.length > largestKeys) throw tooLarge('device_keys: these are too large');
  const algorithms = parseAlgorithms(object['algorithms']);
  const keys = parseKeys(object['keys'], deviceId);
  if (algorithms.includes(olm) && !keys.has(`curve25519:${deviceId}`)) {
    throw invalidParam(`device_keys: ${olm} needs a curve25519 key`);
  }
  const signingKeyId = `ed25519:${deviceId}`;
  const signingKey = VerifyKey.fromBase64(keys.get(signingKeyId) ?? '');
  if (!signingKey) throw invalidParam('device_keys: the ed25519 key is missing');
  if (!isSignedBy(object, userId, signingKeyId, signingKey)) {
    throw invalidSignature('device_keys: these are not signed by the ed25519 key of the device');
  }
  return { object, covered, signingKey };
}

function parseAlgorithms(algorithms: unknown): readonly string[] {
  if (!Array.isArray(algorithms) || algorithms.some((name) => typeof name !== 'string')) {
    throw invalidParam('device_keys: algorithms must be a list of names');
  }
  return algorithms as string[];
}

/** The keys by name; those of the two known algorithms are sound. */
function parseKeys(value: unknown, deviceId: string): ReadonlyMap<string, string> {
  if (!isJsonObject(value)) throw invalidParam('device_keys: keys must be an object');
  const keys = new Map<string, string>();
  for (const [name, key] of Object.entries(value)) {
    const algorithm = name.endsWith(`:${deviceId}`) ? name.slice(0, -deviceId.length - 1) : '';
    if (algorithm === '') throw invalidParam('device_keys: a key is named for another device');
    if (typeof key !== 'string') throw invalidParam(`device_keys: ${name} must be text`);
    const isKnown = algorithm === 'ed25519' || algorithm === 'curve25519';
    if (isKnown && !isPublicKey(key)) throw invalidParam(`device_keys: ${name} is not a key`);
    keys.set(name, key);
  }
  return keys;
}

/** Whether two sets of device keys stand for the same device, whatever else they say. */
export function haveSameIdentity(one: JsonObject, other: JsonObject): boolean {
  const identity = ({ keys }: JsonObject) => coveredText(isJsonObject(keys) ? keys : {});
  return identity(one) === identity(other);
}
