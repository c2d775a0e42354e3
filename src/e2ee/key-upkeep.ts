import type { AccountLifecycle } from '../accounts/index.ts';
import type { DeviceCleanup } from '../devices/index.ts';
import { type AnyWriter, type Writer, writerFor } from '../kernel/database/index.ts';
import { jsonFacts, type Publish, Stream } from '../kernel/streams/index.ts';
import { readCrossSigningKeys, writeCrossSigningKey } from './cross-signing/store.ts';
import { deleteKeysOfDevices } from './keys/device-key-store.ts';
import type { DeviceAddress } from './keys/one-time-key-store.ts';
import { signaturesBy, withSignatures } from './keys/signed-object.ts';
import type { E2eeTables } from './tables.ts';

/**
 * Deletes the keys of removed devices and deactivated accounts. Constructed before the devices and accounts,
 * which call it.
 */
export class KeyUpkeep implements DeviceCleanup, AccountLifecycle {
  /** Publishes devices whose number of one-time or fallback keys has changed. */
  readonly keyStream = new Stream<DeviceAddress>('device_keys', jsonFacts());

  async devicesRemoved(
    writer: AnyWriter,
    publish: Publish,
    userId: string,
    deviceIds: readonly string[],
  ): Promise<void> {
    const keys = writerFor<E2eeTables>(writer);
    await deleteKeysOfDevices(keys, userId, deviceIds);
    await deleteDeviceSignatures(keys, userId, deviceIds);
    for (const deviceId of deviceIds) publish(this.keyStream, { userId, deviceId });
  }

  async deactivated(writer: AnyWriter, _publish: Publish, { userId }: { userId: string }): Promise<void> {
    const keys = writerFor<E2eeTables>(writer);
    for (const table of tablesByUser) await keys.deleteFrom(table).where('user_id', '=', userId).execute();
    await keys.deleteFrom('user_signatures').where('target_user_id', '=', userId).execute();
  }
}

/** Deletes the signatures by removed devices from the user's master key. */
async function deleteDeviceSignatures(
  writer: Writer<E2eeTables>,
  userId: string,
  deviceIds: readonly string[],
): Promise<void> {
  const master = (await readCrossSigningKeys(writer, userId)).get('master');
  if (!master) return;
  const removedKeyIds = new Set(deviceIds.map((deviceId) => `ed25519:${deviceId}`));
  const signatures = Object.entries(signaturesBy(master.object, userId));
  const remaining = signatures.filter(([keyId]) => !removedKeyIds.has(keyId));
  if (remaining.length === signatures.length) return;
  const object = withSignatures(master.object, userId, Object.fromEntries(remaining));
  await writeCrossSigningKey(writer, userId, 'master', { ...master, object });
}

const tablesByUser = [
  'cross_signing_keys',
  'user_signatures',
  'room_key_versions',
  'room_key_backups',
  'room_keys',
] as const;
