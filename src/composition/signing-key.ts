import { readFile } from 'node:fs/promises';
import { readSigningKeys, type SigningKey } from '../protocol/index.ts';
import type { Kernel } from './kernel.ts';

/** The key that signs events and requests to other servers: the first one of the file `signing_key_path`. */
export async function loadSigningKey({ configuration }: Kernel): Promise<SigningKey> {
  const { signing_key_path: path } = configuration.federationClient;
  if (path === null) throw new Error('signing_key_path is not set');
  const [key] = readSigningKeys(await readFile(path, 'utf8'));
  if (!key) throw new Error(`${path} holds no signing key`);
  return key;
}
