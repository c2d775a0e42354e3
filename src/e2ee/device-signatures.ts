import { type AnyWriter, writerFor } from '../kernel/database/index.ts';
import { readCrossSigningKeys, writeCrossSigningKey } from './keys/cross-signing-key-store.ts';
import { signaturesBy, withSignatures } from './signed-object.ts';
import type { E2eeTables } from './tables.ts';

/** Deletes the signatures that removed devices made on the user's master key. */
export async function deleteDeviceSignatures(
  anyWriter: AnyWriter,
  userId: string,
  deviceIds: readonly string[],
): Promise<void> {
  const writer = writerFor<E2eeTables>(anyWriter);
  const master = (await readCrossSigningKeys(writer, userId)).get('master');
  if (!master) return;
  const removedKeyIds = new Set(deviceIds.map((deviceId) => `ed25519:${deviceId}`));
  const signatures = Object.entries(signaturesBy(master.object, userId));
  const remaining = signatures.filter(([keyId]) => !removedKeyIds.has(keyId));
  if (remaining.length === signatures.length) return;
  const object = withSignatures(master.object, userId, Object.fromEntries(remaining));
  await writeCrossSigningKey(writer, userId, 'master', { ...master, object });
}
