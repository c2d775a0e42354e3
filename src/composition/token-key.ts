import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { HearthConfiguration } from '../configuration.ts';
import { StartFailure } from '../kernel/start-failure.ts';
import { readSigningKeys } from '../protocol/index.ts';

/**
 * Returns the key that signs the tokens of guests and short-lived login tokens: `macaroon_secret_key`, or else
 * `registration_shared_secret`, or else a digest of the signing key.
 * @throws StartFailure when the signing key is needed, and its file is not configured or cannot be used
 */
export function tokenKeyOf({ accounts, federationClient }: HearthConfiguration): Uint8Array {
  const secret = accounts.macaroon_secret_key ?? accounts.registration_shared_secret;
  if (secret !== null) return Buffer.from(secret);
  const path = federationClient.signing_key_path;
  if (path === null) throw new StartFailure('signing_key_path is not set');
  try {
    const [key] = readSigningKeys(readFileSync(path, 'utf8'));
    return createHash('sha256').update('hearth token key ').update(key!.exportSeed()).digest();
  } catch (error) {
    throw new StartFailure(`cannot use the signing key file ${path}: ${(error as Error).message}`);
  }
}
