import type { AccountConfirmation } from '../../accounts/index.ts';
import type { Devices } from '../../devices/index.ts';
import type { Database, Writer } from '../../kernel/database/index.ts';
import type { Requester } from '../../kernel/http/index.ts';
import type { Publish, Stream, StreamWriter } from '../../kernel/streams/index.ts';
import {
  forbidden,
  invalidParam,
  type JsonObject,
  missingParam,
  type VerifyKey,
} from '../../protocol/index.ts';
import type { SignatureChange } from '../device-lists/device-lists.ts';
import {
  deleteCrossSigningKey,
  readCrossSigningKeys,
  writeCrossSigningKey,
} from '../keys/cross-signing-key-store.ts';
import { readDeviceKeysOf, writeDeviceKeys } from '../keys/device-key-store.ts';
import { signingKeyOf } from '../keys/key-upload.ts';
import { deleteSignaturesBy, deleteSignaturesOf, writeUserSignature } from '../keys/user-signatures.ts';
import { signaturesBy, withSignatures } from '../signed-object.ts';
import type { E2eeTables } from '../tables.ts';
import { type CrossSigningKey, parseCrossSigningKey } from './cross-signing-key.ts';
import {
  deviceSignatures,
  masterSignature,
  needsReauthentication,
  newKeys,
  type StoredKeys,
} from './key-set.ts';

/** The body of `POST /keys/device_signing/upload`. */
export interface CrossSigningBody {
  readonly master_key?: JsonObject;
  readonly self_signing_key?: JsonObject;
  readonly user_signing_key?: JsonObject;
  readonly auth?: unknown;
}

/** Requires a user to authenticate again before an action. Implemented by the accounts slice. */
export interface Reauthenticator {
  confirm<T>(confirmation: AccountConfirmation, action: () => Promise<T>): Promise<T>;
}

export interface CrossSigningDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly devices: Devices;
  readonly reauthenticator: Reauthenticator;
  readonly signatureStream: Stream<SignatureChange>;
}

/** Stores the cross-signing keys that users upload. Source: client-server API, "Cross-signing". */
export class CrossSigning {
  readonly #deps: CrossSigningDeps;

  constructor(deps: CrossSigningDeps) {
    this.#deps = deps;
  }

  async hasMasterKey(userId: string): Promise<boolean> {
    const reader = this.#deps.database.reader<E2eeTables>();
    return (await readCrossSigningKeys(reader, userId)).has('master');
  }

  /**
   * Stores the cross-signing keys of a request. Keys that replace stored keys need authentication.
   * @throws Challenge when the user has to authenticate again; MatrixError M_INVALID_PARAM, M_TOO_LARGE,
   * M_INVALID_SIGNATURE, M_MISSING_PARAM without a master key, M_FORBIDDEN when a key has the id of a device
   */
  async upload(requester: Requester, body: CrossSigningBody, ip: string): Promise<void> {
    const { database, reauthenticator, streams } = this.#deps;
    const { userId } = requester;
    const uploadedKeys = parseKeys(body, userId);
    const store = (isAuthenticated: boolean) =>
      streams.write<E2eeTables, boolean>((writer, publish) =>
        this.#store(writer, publish, { userId, uploadedKeys, isAuthenticated }),
      );
    const isAppservice = requester.appservice !== undefined;
    for (;;) {
      const stored = await readCrossSigningKeys(database.reader<E2eeTables>(), userId);
      checkChain(uploadedKeys, stored, userId);
      if (newKeys(uploadedKeys, stored).length === 0) return;
      if (!isAppservice && needsReauthentication(uploadedKeys, stored)) {
        const operation = 'POST /keys/device_signing/upload';
        const request = { requester, operation, body, ip, always: true };
        await reauthenticator.confirm(request, () => store(true));
        return;
      }
      if (await store(isAppservice)) return;
    }
  }

  /**
   * @returns false when another request has stored keys in the meantime, so that replacing them needs
   * authentication
   */
  async #store(
    writer: Writer<E2eeTables>,
    publish: Publish,
    {
      userId,
      uploadedKeys,
      isAuthenticated,
    }: { userId: string; uploadedKeys: readonly CrossSigningKey[]; isAuthenticated: boolean },
  ): Promise<boolean> {
    const stored = await readCrossSigningKeys(writer, userId);
    if (!isAuthenticated && needsReauthentication(uploadedKeys, stored)) return false;
    checkChain(uploadedKeys, stored, userId);
    const added = newKeys(uploadedKeys, stored);
    const usages = new Set(added.map(({ usage }) => usage));
    const names = await this.#deps.devices.names([userId], writer);
    for (const { publicKey } of added) {
      if (names.get(userId)?.has(publicKey))
        throw forbidden('A cross-signing key has the id of one of your devices');
    }
    if (usages.has('master')) {
      // A new master key invalidates the keys that the old master key signed, unless the same request replaces these
      // keys. It also invalidates the signatures that other users made on the old master key.
      for (const usage of ['self_signing', 'user_signing'] as const) {
        if (!usages.has(usage)) await deleteCrossSigningKey(writer, userId, usage);
      }
      await deleteSignaturesOf(writer, userId);
    }
    if (usages.has('master') || usages.has('user_signing')) await deleteSignaturesBy(writer, userId);
    const changesDeviceSignatures = usages.has('master') || usages.has('self_signing');
    const deviceIds = changesDeviceSignatures ? await removeSelfSigningSignatures(writer, userId) : [];
    for (const key of added) {
      const object = await this.#withTrustedSignatures(writer, userId, key, uploadedKeys, stored);
      await writeCrossSigningKey(writer, userId, key.usage, { publicKey: key.publicKey, object });
    }
    if (!changesDeviceSignatures) await this.#recordUserSigningKey(writer, publish, userId, added[0]);
    else
      await this.#deps.devices.recordListChange(writer, publish, userId, { deviceIds, crossSigning: true });
    return true;
  }

  /** Notifies the user's own devices only: no other user may see a user-signing key. */
  async #recordUserSigningKey(
    writer: Writer<E2eeTables>,
    publish: Publish,
    userId: string,
    key: CrossSigningKey | undefined,
  ): Promise<void> {
    if (!key) return;
    const position = publish(this.#deps.signatureStream, { userId, targetUserId: userId });
    const change = { targetUserId: userId, targetKey: key.publicKey, keyId: '', signature: '' };
    await writeUserSignature(writer, userId, change, position);
  }

  /** Returns the key with the signatures that are valid and that every user may see. */
  async #withTrustedSignatures(
    writer: Writer<E2eeTables>,
    userId: string,
    key: CrossSigningKey,
    uploadedKeys: readonly CrossSigningKey[],
    stored: StoredKeys,
  ): Promise<JsonObject> {
    const signatures =
      key.usage === 'master'
        ? deviceSignatures(key.object, userId, await readSigningKeys(writer, userId))
        : masterSignature(key, userId, masterKeyOf(uploadedKeys, stored));
    return withSignatures(key.object, userId, signatures);
  }
}

/**
 * Removes the signatures from the device keys of a user, because the self-signing key was replaced. Only each device's
 * own signature stays.
 * @returns the ids of the changed devices
 */
async function removeSelfSigningSignatures(writer: Writer<E2eeTables>, userId: string): Promise<string[]> {
  const changed: string[] = [];
  for (const { deviceId, keys } of await readDeviceKeysOf(writer, [userId])) {
    const object = JSON.parse(keys) as JsonObject;
    const all = Object.entries(signaturesBy(object, userId));
    const ownSignatures = all.filter(([id]) => id === `ed25519:${deviceId}`);
    if (ownSignatures.length === all.length) continue;
    changed.push(deviceId);
    await writeDeviceKeys(
      writer,
      userId,
      deviceId,
      withSignatures(object, userId, Object.fromEntries(ownSignatures)),
    );
  }
  return changed;
}

/** Returns the Ed25519 keys of a user's devices by device id. */
async function readSigningKeys(
  reader: Parameters<typeof readDeviceKeysOf>[0],
  userId: string,
): Promise<ReadonlyMap<string, VerifyKey>> {
  const devices = await readDeviceKeysOf(reader, [userId]);
  return new Map(
    devices.flatMap(({ deviceId, keys }) => {
      const key = signingKeyOf(JSON.parse(keys) as JsonObject, deviceId);
      return key ? [[deviceId, key] as const] : [];
    }),
  );
}

function parseKeys(body: CrossSigningBody, userId: string): CrossSigningKey[] {
  return (['master', 'self_signing', 'user_signing'] as const).flatMap((usage) => {
    const object = body[`${usage}_key`];
    return object ? [parseCrossSigningKey(object, userId, usage)] : [];
  });
}

/** @throws MatrixError unless all keys differ, there is a master key, and it has signed the other keys */
function checkChain(uploadedKeys: readonly CrossSigningKey[], stored: StoredKeys, userId: string): void {
  if (uploadedKeys.length === 0) return;
  const master = masterKeyOf(uploadedKeys, stored);
  const sentUsages = new Set(uploadedKeys.map(({ usage }) => usage));
  const unchanged = [...stored].filter(([usage]) => !sentUsages.has(usage)).map(([, key]) => key);
  const publicKeys = [...uploadedKeys, ...unchanged].map(({ publicKey }) => publicKey);
  if (new Set(publicKeys).size < publicKeys.length)
    throw invalidParam('The cross-signing keys must differ from each other');
  for (const key of uploadedKeys) {
    if (key.usage !== 'master') masterSignature(key, userId, master);
  }
}

function masterKeyOf(uploadedKeys: readonly CrossSigningKey[], stored: StoredKeys): string {
  const master = uploadedKeys.find(({ usage }) => usage === 'master') ?? stored.get('master');
  if (!master)
    throw missingParam('A master key is required: neither this request nor an earlier one has uploaded it');
  return master.publicKey;
}
