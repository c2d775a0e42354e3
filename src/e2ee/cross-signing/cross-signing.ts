import type { AccountConfirmation } from '../../accounts/index.ts';
import type { Devices } from '../../devices/index.ts';
import type { Database, Writer } from '../../kernel/database/index.ts';
import type { Requester } from '../../kernel/http/index.ts';
import type { Publish, StreamWriter } from '../../kernel/streams/index.ts';
import {
  forbidden,
  invalidParam,
  type JsonObject,
  missingParam,
  type VerifyKey,
} from '../../protocol/index.ts';
import { readDeviceKeysOf, writeDeviceKeys } from '../keys/device-key-store.ts';
import { signingKeyOf } from '../keys/key-upload.ts';
import { signaturesBy, withSignatures } from '../keys/signed-object.ts';
import type { E2eeTables } from '../tables.ts';
import { type CrossSigningKey, parseCrossSigningKey } from './cross-signing-key.ts';
import {
  deviceSignatures,
  masterSignature,
  needsReauthentication,
  newKeys,
  type StoredKeys,
} from './key-set.ts';
import { deleteCrossSigningKey, readCrossSigningKeys, writeCrossSigningKey } from './store.ts';
import { deleteSignaturesBy, deleteSignaturesOf } from './user-signatures.ts';

/** What a client uploads. */
export interface CrossSigningBody {
  readonly master_key?: JsonObject;
  readonly self_signing_key?: JsonObject;
  readonly user_signing_key?: JsonObject;
  readonly auth?: unknown;
}

/** Has a user prove who they are; the accounts slice does. */
export interface Reauthenticator {
  confirm(confirmation: AccountConfirmation): Promise<void>;
}

export interface CrossSigningDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly devices: Devices;
  readonly reauthenticator: Reauthenticator;
}

/** Takes the cross-signing keys of users. Source: client-server API, "Cross-signing". */
export class CrossSigning {
  readonly #deps: CrossSigningDeps;

  constructor(deps: CrossSigningDeps) {
    this.#deps = deps;
  }

  /**
   * @throws Challenge when the user has to prove who they are; MatrixError M_INVALID_PARAM, M_INVALID_SIGNATURE,
   * M_MISSING_PARAM without a master key, M_FORBIDDEN when a key has the id of a device
   */
  async upload(requester: Requester, body: CrossSigningBody, ip: string): Promise<void> {
    const { database, reauthenticator, streams } = this.#deps;
    const { userId } = requester;
    const sent = parseKeys(body, userId);
    let isProven = requester.appservice !== undefined;
    for (;;) {
      const stored = await readCrossSigningKeys(database.reader<E2eeTables>(), userId);
      checkChain(sent, stored, userId);
      if (newKeys(sent, stored).length === 0) return;
      if (!isProven && needsReauthentication(sent, stored)) {
        const operation = 'POST /keys/device_signing/upload';
        await reauthenticator.confirm({ requester, operation, body, ip, always: true });
        isProven = true;
      }
      const proven = isProven;
      const isDone = await streams.write<E2eeTables, boolean>((writer, publish) =>
        this.#put(writer, publish, { userId, sent, proven }),
      );
      if (isDone) return;
    }
  }

  /** @returns whether the keys are stored: not if they need a proof by now, since others came at the same time */
  async #put(
    writer: Writer<E2eeTables>,
    publish: Publish,
    { userId, sent, proven }: { userId: string; sent: readonly CrossSigningKey[]; proven: boolean },
  ): Promise<boolean> {
    const stored = await readCrossSigningKeys(writer, userId);
    if (!proven && needsReauthentication(sent, stored)) return false;
    checkChain(sent, stored, userId);
    const added = newKeys(sent, stored);
    const usages = new Set(added.map(({ usage }) => usage));
    const names = await this.#deps.devices.names([userId], writer);
    for (const { publicKey } of added) {
      if (names.get(userId)?.has(publicKey)) throw forbidden('A key has the id of one of your devices');
    }
    if (usages.has('master')) {
      // The keys that hang on the old one, unless they were sent anew, and what others have signed of it.
      for (const usage of ['self_signing', 'user_signing'] as const) {
        if (!usages.has(usage)) await deleteCrossSigningKey(writer, userId, usage);
      }
      await deleteSignaturesOf(writer, userId);
    }
    if (usages.has('master') || usages.has('user_signing')) await deleteSignaturesBy(writer, userId);
    const isOtherSigner = usages.has('master') || usages.has('self_signing');
    const deviceIds = isOtherSigner ? await dropForeignSignatures(writer, userId) : [];
    for (const key of added) {
      const object = await this.#withTrustedSignatures(writer, userId, key, sent, stored);
      await writeCrossSigningKey(writer, userId, key.usage, { publicKey: key.publicKey, object });
    }
    await this.#deps.devices.recordListChange(writer, publish, userId, {
      deviceIds,
      crossSigning: isOtherSigner,
    });
    return true;
  }

  /** The key with those of its signatures that are right and for everybody. */
  async #withTrustedSignatures(
    writer: Writer<E2eeTables>,
    userId: string,
    key: CrossSigningKey,
    sent: readonly CrossSigningKey[],
    stored: StoredKeys,
  ): Promise<JsonObject> {
    const signatures =
      key.usage === 'master'
        ? deviceSignatures(key.object, userId, await readSigningKeys(writer, userId))
        : masterSignature(key, userId, masterOf(sent, stored));
    return withSignatures(key.object, userId, signatures);
  }
}

/**
 * Leaves on the keys of devices their own signatures only: the key that has signed them is no more.
 * @returns the devices that have lost some
 */
async function dropForeignSignatures(writer: Writer<E2eeTables>, userId: string): Promise<string[]> {
  const changed: string[] = [];
  for (const { deviceId, keys } of await readDeviceKeysOf(writer, [userId])) {
    const object = JSON.parse(keys) as JsonObject;
    const all = Object.entries(signaturesBy(object, userId));
    const own = all.filter(([id]) => id === `ed25519:${deviceId}`);
    if (own.length === all.length) continue;
    changed.push(deviceId);
    await writeDeviceKeys(writer, userId, deviceId, withSignatures(object, userId, Object.fromEntries(own)));
  }
  return changed;
}

/** The Ed25519 keys of a user's devices, by device id. */
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
  const keys = (['master', 'self_signing', 'user_signing'] as const).flatMap((usage) => {
    const object = body[`${usage}_key`];
    return object ? [parseCrossSigningKey(object, userId, usage)] : [];
  });
  return keys;
}

/** Throws unless the keys differ, there is a master key, and it has signed the others. */
function checkChain(sent: readonly CrossSigningKey[], stored: StoredKeys, userId: string): void {
  if (sent.length === 0) return;
  const master = masterOf(sent, stored);
  const sentUsages = new Set(sent.map(({ usage }) => usage));
  const kept = [...stored].filter(([usage]) => !sentUsages.has(usage)).map(([, key]) => key);
  const all = [...sent, ...kept].map(({ publicKey }) => publicKey);
  if (new Set(all).size < all.length) throw invalidParam('The keys must differ from each other');
  for (const key of sent) {
    if (key.usage !== 'master') masterSignature(key, userId, master);
  }
}

function masterOf(sent: readonly CrossSigningKey[], stored: StoredKeys): string {
  const master = sent.find(({ usage }) => usage === 'master') ?? stored.get('master');
  if (!master) throw missingParam('There is no master key');
  return master.publicKey;
}
