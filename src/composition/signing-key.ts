import { readFile } from 'node:fs/promises';
import { StartFailure, startStep } from '../kernel/start-failure.ts';
import { readSigningKeys, type SigningKey } from '../protocol/index.ts';
import type { Kernel } from './kernel.ts';

/**
 * Loads the key that signs events and requests to remote servers. It is the first key in the file `signing_key_path`.
 */
export async function loadSigningKey(kernel: Kernel): Promise<SigningKey> {
  const [key] = await loadSigningKeys(kernel);
  return key;
}

/** Loads the keys that are published as valid: all keys in the file `signing_key_path`. */
export async function loadSigningKeys({
  configuration,
}: Kernel): Promise<readonly [SigningKey, ...SigningKey[]]> {
  const { signing_key_path: path } = configuration.federationClient;
  if (path === null) throw new Error('signing_key_path is not set');
  return readKeys(path);
}

/** Loads the keys that sign the responses of this server as a notary: responses with the keys of remote servers. */
export async function loadNotaryKeys(kernel: Kernel): Promise<readonly SigningKey[]> {
  const { key_server_signing_keys_path: path } = kernel.configuration.federationClient;
  return path === null ? [await loadSigningKey(kernel)] : readKeys(path, 'key_server_signing_keys_path: ');
}

/** Reads the keys in a file. @param prefix the beginning of error messages, such as the name of the option */
async function readKeys(path: string, prefix = ''): Promise<readonly [SigningKey, ...SigningKey[]]> {
  const [first, ...more] = await startStep(`${prefix}cannot use the signing key file ${path}`, async () =>
    readSigningKeys(await readFile(path, 'utf8')),
  );
  if (!first) throw new StartFailure(`${prefix}${path} contains no signing key`);
  return [first, ...more];
}
