import { type AnyWriter, writerFor } from '../../kernel/database/index.ts';
import type { E2eeTables } from '../tables.ts';

/**
 * Deletes the unclaimed one-time keys of all devices, after a backup was restored: some of them were claimed after the
 * backup, and a key that is claimed twice makes messages unreadable. Clients upload new keys when they see the counts.
 */
export async function deleteOneTimeKeys(writer: AnyWriter): Promise<void> {
  await writerFor<E2eeTables>(writer).deleteFrom('one_time_keys').execute();
}
