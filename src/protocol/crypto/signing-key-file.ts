import { isSigningKeyName } from '../identifiers/other-ids.ts';
import { decodeBase64 } from './base64.ts';
import { SigningKey } from './ed25519.ts';

/** A signing key file that is malformed or empty. The message gives the number of a malformed line, never its text. */
export class SigningKeyFileError extends Error {
  override readonly name = 'SigningKeyFileError';
}

/**
 * Reads a signing key file: one key per line, as `ed25519 <name> <unpadded base64 of the seed>`. The server
 * signs with the first key.
 * @param content the text of the file
 * @throws SigningKeyFileError
 */
export function readSigningKeys(content: string): readonly SigningKey[] {
  const keys: SigningKey[] = [];
  for (const [index, line] of content.split('\n').entries()) {
    if (line.trim() !== '') keys.push(readLine(line, index + 1));
  }
  if (keys.length === 0) throw new SigningKeyFileError('The signing key file holds no key');
  return keys;
}

function readLine(line: string, number: number): SigningKey {
  const [algorithm, name, seed, ...rest] = line.trim().split(/\s+/);
  if (algorithm === undefined || name === undefined || seed === undefined || rest.length > 0) {
    throw new SigningKeyFileError(`Line ${number}: expected "ed25519 <name> <base64 seed>"`);
  }
  if (algorithm !== 'ed25519') throw new SigningKeyFileError(`Line ${number}: the algorithm is not ed25519`);
  if (!isSigningKeyName(name)) {
    throw new SigningKeyFileError(`Line ${number}: the name may hold letters, digits and underscores only`);
  }
  const bytes = decodeBase64(seed);
  const key = bytes && SigningKey.fromSeed(name, bytes);
  if (key === undefined) throw new SigningKeyFileError(`Line ${number}: the seed is not 32 bytes in base64`);
  return key;
}

/** Returns the content of a signing key file; the inverse of `readSigningKeys`. Secret. */
export function writeSigningKeys(keys: readonly SigningKey[]): string {
  return keys.map((key) => `ed25519 ${key.name} ${key.exportSeed()}\n`).join('');
}
