import { type AnyWriter, writerFor } from '../../kernel/database/index.ts';
import { forbidden } from '../../protocol/index.ts';
import type { E2eeTables } from '../tables.ts';
import { readCrossSigningKeys } from './cross-signing-key-store.ts';

/**
 * Refuses new devices whose ids are public keys of the user's cross-signing keys, because signatures name devices and
 * keys in the same way. Source: client-server API, "Cross-signing".
 * @throws MatrixError M_FORBIDDEN
 */
export async function refuseIdsOfKeys(
  writer: AnyWriter,
  userId: string,
  deviceIds: readonly string[],
): Promise<void> {
  const keys = await readCrossSigningKeys(writerFor<E2eeTables>(writer), userId);
  if ([...keys.values()].some(({ publicKey }) => deviceIds.includes(publicKey))) {
    throw forbidden('The device id is the public key of one of your cross-signing keys');
  }
}
