import type { Devices } from '../../devices/index.ts';
import type { AnyWriter, Database, Writer } from '../../kernel/database/index.ts';
import { writerFor } from '../../kernel/database/index.ts';
import type { Publish, Sequence, Stream, StreamWriter } from '../../kernel/streams/index.ts';
import { invalidParam, type JsonObject, notFound, tooLarge, VerifyKey } from '../../protocol/index.ts';
import { coveredText, isSignedBy, signaturesBy, withSignatures } from '../signed-object.ts';
import type { E2eeTables } from '../tables.ts';
import { readCrossSigningKeys } from './cross-signing-key-store.ts';
import { deleteOneTimeKeysOfDevices, readDeviceKeys, writeDeviceKeys } from './device-key-store.ts';
import { type DeviceKeys, haveSameIdentity, parseDeviceKeys } from './device-keys.ts';
import { countFallbackKeys, writeFallbackKey } from './fallback-key-store.ts';
import { withDefaultAlgorithm } from './key-counts.ts';
import {
  countKeys,
  type DeviceAddress,
  deleteOldClaimedKeys,
  insertOneTimeKeys,
  readDigests,
} from './one-time-key-store.ts';
import { type OneTimeKey, parseFallbackKeys, parseOneTimeKeys } from './one-time-keys.ts';

/** The body of `POST /keys/upload`. */
export interface KeyUploadBody {
  readonly device_keys?: JsonObject;
  readonly one_time_keys?: JsonObject;
  readonly fallback_keys?: JsonObject;
}

/** The parsed and checked keys of an upload. */
export interface CheckedUpload {
  readonly deviceKeys: DeviceKeys | undefined;
  readonly oneTimeKeys: readonly OneTimeKey[];
  readonly fallbackKeys: readonly OneTimeKey[];
}

export interface KeyUploadDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly devices: Devices;
  readonly keyStream: Stream<DeviceAddress>;
  readonly keyIds: Sequence;
}

/** Maximum number of unclaimed one-time keys of a device. Clients keep up to about 100 on the server. */
const maxOneTimeKeys = 1_000;

/** Maximum number of fallback keys of a device, one for each algorithm. Clients use one algorithm. */
const maxFallbackKeys = 20;

/** Maximum number of claimed keys that are stored for a device. */
const maxClaimedKeys = 1_000;

/** Stores the keys that devices upload. Source: client-server API, `POST /keys/upload`. */
export class KeyUpload {
  readonly #deps: KeyUploadDeps;

  constructor(deps: KeyUploadDeps) {
    this.#deps = deps;
  }

  /**
   * Stores the keys that a device uploads.
   *
   * @returns the number of unclaimed one-time keys of the device by algorithm
   * @throws MatrixError M_BAD_JSON, M_TOO_LARGE, M_INVALID_PARAM for another one-time key with the name of a stored one,
   * M_NOT_FOUND for a deleted device
   */
  async upload(userId: string, deviceId: string, body: KeyUploadBody): Promise<Record<string, number>> {
    const device = { userId, deviceId };
    const checked = this.check(device, body);
    return this.#deps.streams.write<E2eeTables, Record<string, number>>((writer, publish) =>
      this.uploadIn(writer, publish, device, checked),
    );
  }

  /** Parses the keys of an upload, before the transaction. @throws MatrixError M_BAD_JSON, M_TOO_LARGE */
  check({ userId, deviceId }: DeviceAddress, body: KeyUploadBody): CheckedUpload {
    // Refuses too many keys before they are stored, because storing thousands of keys takes long. All keys of the device
    // are counted only after these keys are stored.
    requireAtMost(maxOneTimeKeys, Object.keys(body.one_time_keys ?? {}).length, 'one-time keys');
    requireAtMost(maxFallbackKeys, Object.keys(body.fallback_keys ?? {}).length, 'fallback keys');
    return {
      deviceKeys: body.device_keys && parseDeviceKeys(body.device_keys, userId, deviceId),
      oneTimeKeys: parseOneTimeKeys(body.one_time_keys ?? {}),
      fallbackKeys: parseFallbackKeys(body.fallback_keys ?? {}),
    };
  }

  /**
   * Stores the keys of a checked upload inside the caller's transaction. Returns the same counts as `upload`.
   * @throws MatrixError M_TOO_LARGE, M_INVALID_PARAM and M_NOT_FOUND as `upload`
   */
  async uploadIn(
    anyWriter: AnyWriter,
    publish: Publish,
    device: DeviceAddress,
    { deviceKeys, oneTimeKeys, fallbackKeys }: CheckedUpload,
  ): Promise<Record<string, number>> {
    const writer = writerFor<E2eeTables>(anyWriter);
    const { devices, keyStream } = this.#deps;
    const exists = (await devices.names([device.userId], writer)).get(device.userId)?.has(device.deviceId);
    if (!exists) throw notFound('The device was deleted');
    if (deviceKeys) await this.#putDeviceKeys(writer, publish, device, deviceKeys);
    if (oneTimeKeys.length > 0) await this.#addOneTimeKeys(writer, device, oneTimeKeys);
    for (const key of fallbackKeys) await writeFallbackKey(writer, device, key);
    if (fallbackKeys.length > 0)
      requireAtMost(maxFallbackKeys, await countFallbackKeys(writer, device), 'fallback keys');
    const counts = await countKeys(writer, device);
    const count = Object.values(counts).reduce((sum, ofAlgorithm) => sum + ofAlgorithm, 0);
    requireAtMost(maxOneTimeKeys, count, 'one-time keys');
    if (deviceKeys || oneTimeKeys.length > 0 || fallbackKeys.length > 0) publish(keyStream, device);
    return withDefaultAlgorithm(counts);
  }

  /**
   * Stores the object `device_keys` of a device. Keeps the signature of the self-signing key if it is valid, and the
   * signature of the device itself without a check. Deletes the one-time and fallback keys of the device when its
   * identity keys have changed.
   */
  async #putDeviceKeys(
    writer: Writer<E2eeTables>,
    publish: Publish,
    device: DeviceAddress,
    { object, covered }: DeviceKeys,
  ): Promise<void> {
    const { userId, deviceId } = device;
    const stored = await readDeviceKeys(writer, userId, deviceId);
    const crossSigning = await readCrossSigningKeys(writer, userId);
    const isUnchanged = stored !== undefined && coveredText(stored) === covered;
    const signatures: Record<string, string> = isUnchanged ? { ...signaturesBy(stored, userId) } : {};
    const trustedSigners = [crossSigning.get('self_signing')?.publicKey, deviceId];
    for (const [keyId, signature] of Object.entries(signaturesBy(object, userId))) {
      const signer = trustedSigners.find((id) => id !== undefined && keyId === `ed25519:${id}`);
      const key = signer === deviceId ? undefined : VerifyKey.fromBase64(signer ?? '');
      const isValid = signer === deviceId || (key !== undefined && isSignedBy(object, userId, keyId, key));
      if (isValid) signatures[keyId] = signature;
    }
    // The specification requires `signatures` in responses.
    const trustedObject = withSignatures({ signatures: {}, ...object }, userId, signatures);
    if (isUnchanged && JSON.stringify(signaturesBy(stored, userId)) === JSON.stringify(signatures)) return;
    if (stored && !haveSameIdentity(stored, object)) {
      await deleteOneTimeKeysOfDevices(writer, userId, [deviceId]);
    }
    await writeDeviceKeys(writer, userId, deviceId, trustedObject);
    await this.#deps.devices.recordListChange(writer, publish, userId, { deviceIds: [deviceId] });
  }

  async #addOneTimeKeys(
    writer: Writer<E2eeTables>,
    device: DeviceAddress,
    keys: readonly OneTimeKey[],
  ): Promise<void> {
    if (keys.length > maxOneTimeKeys) throw tooLarge(`A device has at most ${maxOneTimeKeys} one-time keys`);
    const digests = await readDigests(
      writer,
      device,
      keys.map(({ keyId }) => keyId),
    );
    const added = keys.filter(({ algorithm, keyId, digest }) => {
      const name = `${algorithm}:${keyId}`;
      const availableDigest = digests.available.get(name);
      if (availableDigest !== undefined && availableDigest !== digest) {
        throw invalidParam(`The device has another one-time key with the name ${name}`);
      }
      // A claimed key is not stored again. A client uploads it again when it did not receive the first response.
      return availableDigest === undefined && digests.claimed.get(name) !== digest;
    });
    await insertOneTimeKeys(
      writer,
      added.map((key) => ({ ...device, ...key, id: this.#deps.keyIds.next() })),
    );
    await deleteOldClaimedKeys(writer, device, maxClaimedKeys);
  }
}

/** Returns the Ed25519 key in the object `device_keys` of a device; `undefined` without a valid one. */
export function signingKeyOf(deviceKeys: JsonObject, deviceId: string): VerifyKey | undefined {
  const keys = deviceKeys['keys'] as Record<string, string>;
  return VerifyKey.fromBase64(keys[`ed25519:${deviceId}`] ?? '');
}

/** @throws MatrixError M_TOO_LARGE */
function requireAtMost(max: number, count: number, what: string): void {
  if (count > max) throw tooLarge(`A device has at most ${max} ${what}`);
}
