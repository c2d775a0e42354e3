import type { Devices } from '../../devices/index.ts';
import type { Database, Writer } from '../../kernel/database/index.ts';
import type { Publish, Stream, StreamWriter } from '../../kernel/streams/index.ts';
import {
  invalidParam,
  isJsonObject,
  isUserId,
  type JsonObject,
  MatrixError,
  serverOfUser,
  tooLarge,
} from '../../protocol/index.ts';
import type { SignatureChange } from '../device-lists/device-lists.ts';
import {
  readCrossSigningKeys,
  readCrossSigningKeysOf,
  writeCrossSigningKey,
} from '../keys/cross-signing-key-store.ts';
import { readDeviceKeys, readDeviceKeysOf, writeDeviceKeys } from '../keys/device-key-store.ts';
import type { KeyQuery } from '../keys/key-query.ts';
import { signingKeyOf } from '../keys/key-upload.ts';
import { readUserSignatures, writeUserSignature } from '../keys/user-signatures.ts';
import { failureOf } from '../remote-keys/remote-keys.ts';
import { coveredText, signaturesBy, withSignatures } from '../signed-object.ts';
import type { E2eeTables } from '../tables.ts';
import {
  type CheckedSignatures,
  checkOtherUserSignature,
  checkOwnSignatures,
  type Signer,
} from './signature-check.ts';

export interface SignatureUploadDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly devices: Devices;
  readonly query: KeyQuery;
  readonly serverName: string;
  readonly signatureStream: Stream<SignatureChange>;
}

/** Errors by user id, and by device id or public key. */
export type SignatureFailures = Record<string, Record<string, JsonObject>>;

interface SignedObject {
  readonly targetUserId: string;
  /** A device id, or the public key of a cross-signing key. */
  readonly targetKey: string;
  readonly object: JsonObject;
}

/** Milliseconds to wait for the answer of another server. */
const remoteTimeout = 10_000;

/** Number of signatures that are checked before control returns to the event loop. */
const checksPerTurn = 50;

/** Stores signatures of devices and users. Source: client-server API, `POST /keys/signatures/upload`. */
export class SignatureUpload {
  readonly #deps: SignatureUploadDeps;

  constructor(deps: SignatureUploadDeps) {
    this.#deps = deps;
  }

  /**
   * Stores the valid signatures.
   * @param body signed objects by user id, and by device id or public key
   * @returns the errors of the invalid signatures
   * @throws MatrixError M_INVALID_PARAM, M_TOO_LARGE
   */
  async upload(userId: string, body: JsonObject): Promise<SignatureFailures> {
    const objects = parseObjects(body);
    const failures = new Map<string, Map<string, JsonObject>>();
    const checked: CheckedSignatures[] = [];
    const signer = await this.#signer(userId);
    const otherUserIds = objects.map(({ targetUserId }) => targetUserId).filter((id) => id !== userId);
    const masters = await this.#masterKeys(new Set(otherUserIds));
    for (const [index, signed] of objects.entries()) {
      if (index % checksPerTurn === checksPerTurn - 1) await new Promise(setImmediate);
      const { targetUserId, targetKey, object } = signed;
      try {
        const master = masters.get(targetUserId);
        if (master instanceof MatrixError) throw master;
        const isOwn = targetUserId === userId;
        checked.push(
          isOwn
            ? checkOwnSignatures(signer, targetKey, object)
            : checkOtherUserSignature(signer, signed, object, master),
        );
      } catch (error) {
        if (!(error instanceof MatrixError)) throw error;
        const userFailures = failures.get(targetUserId) ?? new Map<string, JsonObject>();
        failures.set(targetUserId, userFailures.set(targetKey, failureOf(error)));
      }
    }
    if (checked.length > 0) await this.#store(userId, checked);
    return Object.fromEntries(
      [...failures].map(([id, userFailures]) => [id, Object.fromEntries(userFailures)]),
    );
  }

  async #signer(userId: string): Promise<Signer> {
    const reader = this.#deps.database.reader<E2eeTables>();
    const crossSigning = await readCrossSigningKeys(reader, userId);
    const stored = await readDeviceKeysOf(reader, [userId]);
    const devices = new Map(stored.map(({ deviceId, keys }) => [deviceId, JSON.parse(keys) as JsonObject]));
    const signingKeys = [...devices].flatMap(([deviceId, keys]) => {
      const key = signingKeyOf(keys, deviceId);
      return key ? [[deviceId, key] as const] : [];
    });
    return { userId, crossSigning, devices, signingKeys: new Map(signingKeys) };
  }

  /**
   * Returns the master keys of local and remote users, or an error for a user whose keys could not be read from the
   * other server.
   */
  async #masterKeys(userIds: ReadonlySet<string>): Promise<Map<string, JsonObject | MatrixError>> {
    const { database, query, serverName } = this.#deps;
    const servers = Map.groupBy(userIds, (userId): string => serverOfUser(userId));
    const masterKeys = new Map<string, JsonObject | MatrixError>();
    const local = await readCrossSigningKeysOf(database.reader<E2eeTables>(), servers.get(serverName) ?? []);
    for (const [userId, keys] of local) {
      const master = keys.get('master');
      if (master) masterKeys.set(userId, master.object);
    }
    servers.delete(serverName);
    const remote = [...servers.values()].flat();
    const answers = await query.queryServers(new Map(remote.map((id) => [id, []])), remoteTimeout);
    for (const [server, { keys, failure }] of answers) {
      if (failure) {
        const error = new MatrixError(502, 'M_UNKNOWN', `The keys could not be read from ${server}`);
        for (const userId of servers.get(server) ?? []) masterKeys.set(userId, error);
      }
      for (const [userId, master] of Object.entries(keys.master_keys)) masterKeys.set(userId, master);
    }
    return masterKeys;
  }

  async #store(userId: string, checked: readonly CheckedSignatures[]): Promise<void> {
    const { devices, streams } = this.#deps;
    await streams.write<E2eeTables, void>(async (writer, publish) => {
      const changed: CheckedSignatures[] = [];
      for (const signed of checked) {
        if (signed.kind === 'user') await this.#storeUserSignature(writer, publish, userId, signed);
        else if (await storeOwnSignatures(writer, userId, signed)) changed.push(signed);
      }
      if (changed.length === 0) return;
      const signedDevices = changed.filter(({ kind }) => kind === 'device');
      await devices.recordListChange(writer, publish, userId, {
        deviceIds: signedDevices.map(({ targetKey }) => targetKey),
        crossSigning: signedDevices.length < changed.length,
      });
    });
  }

  async #storeUserSignature(
    writer: Writer<E2eeTables>,
    publish: Publish,
    userId: string,
    { targetUserId, targetKey, signatures }: CheckedSignatures,
  ): Promise<void> {
    const [entry] = Object.entries(signatures);
    if (!entry) return;
    const [keyId, signature] = entry;
    const userSigning = (await readCrossSigningKeys(writer, userId)).get('user_signing');
    // The key may have been replaced after the signature was checked.
    if (keyId !== `ed25519:${userSigning?.publicKey}`) return;
    const [stored] = await readUserSignatures(writer, userId, [targetUserId]);
    if (stored?.targetKey === targetKey && stored.signature === signature) return;
    const position = publish(this.#deps.signatureStream, { userId, targetUserId });
    await writeUserSignature(writer, userId, { targetUserId, targetKey, keyId, signature }, position);
  }
}

/**
 * Adds signatures to a user's own device or master key.
 * @returns whether at least one signature was added
 */
async function storeOwnSignatures(
  writer: Writer<E2eeTables>,
  userId: string,
  { kind, targetKey, covered, signatures }: CheckedSignatures,
): Promise<boolean> {
  const crossSigning = await readCrossSigningKeys(writer, userId);
  const master = crossSigning.get('master');
  const stored = kind === 'master' ? master?.object : await readDeviceKeys(writer, userId, targetKey);
  // The keys may have been replaced after the signatures were checked.
  if (!stored || coveredText(stored) !== covered) return false;
  const selfSigning = `ed25519:${crossSigning.get('self_signing')?.publicKey}`;
  if (kind === 'device' && !(selfSigning in signatures)) return false;
  const storedSignatures = signaturesBy(stored, userId);
  const added = Object.entries(signatures).filter(
    ([keyId, signature]) => storedSignatures[keyId] !== signature,
  );
  if (added.length === 0) return false;
  const object = withSignatures(stored, userId, { ...storedSignatures, ...Object.fromEntries(added) });
  if (kind === 'device') await writeDeviceKeys(writer, userId, targetKey, object);
  else await writeCrossSigningKey(writer, userId, 'master', { publicKey: targetKey, object });
  return true;
}

/** Maximum number of signed objects in a request: each signature is verified. */
const maxObjects = 1_000;

/** @throws MatrixError M_INVALID_PARAM, M_TOO_LARGE */
function parseObjects(body: JsonObject): SignedObject[] {
  const users = Object.entries(body);
  const count = users.reduce((sum, [, keys]) => sum + (isJsonObject(keys) ? Object.keys(keys).length : 1), 0);
  if (count > maxObjects) throw tooLarge(`Upload the signatures of at most ${maxObjects} keys at once`);
  return users.flatMap(([targetUserId, keys]) => {
    if (!isUserId(targetUserId)) throw invalidParam('The keys of the body must be user ids');
    if (!isJsonObject(keys)) throw invalidParam(`The signed objects of ${targetUserId} must be an object`);
    return Object.entries(keys).map(([targetKey, object]) => {
      if (!isJsonObject(object)) throw invalidParam(`A signed object of ${targetUserId} is not an object`);
      return { targetUserId, targetKey, object };
    });
  });
}
