import { hash } from 'node:crypto';
import { type Randomness, randomString } from '../../kernel/randomness.ts';

/** About 238 bits of entropy. */
const tokenLength = 40;

/** A token as the client gets it, and what the server stores of it. */
export interface Token {
  readonly id: number;
  /** Sent to the client and not stored. */
  readonly secret: string;
  readonly hash: string;
}

/**
 * @param kind `hat` for access tokens, `hrt` for refresh tokens; the prefix makes leaked tokens recognizable
 */
export function newToken(randomness: Randomness, kind: 'hat' | 'hrt'): Token {
  const secret = `${kind}_${randomString(randomness, tokenLength)}`;
  return { id: randomId(randomness), secret, hash: hashToken(secret) };
}

/** SHA-256, base64url. A slow hash is not needed because tokens are long and random. */
export const hashToken = (secret: string) => hash('sha256', secret, 'base64url');

/** A positive number of 48 bits. */
function randomId(randomness: Randomness): number {
  const bytes = randomness.bytes(6);
  return Buffer.from(bytes.buffer, bytes.byteOffset, 6).readUIntBE(0, 6) + 1;
}
