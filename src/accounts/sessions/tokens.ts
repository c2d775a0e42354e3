import { createHmac, hash } from 'node:crypto';
import { type Randomness, randomString } from '../../kernel/randomness.ts';

/** Characters of a token: about 238 bits of entropy. */
const tokenLength = 40;

/** A token as the client receives it, and the hash that the server stores. */
export interface Token {
  readonly id: number;
  /** The token itself, which is sent to the client and not stored. */
  readonly secret: string;
  /** The stored hash. */
  readonly hash: string;
}

/**
 * Makes a random token.
 * @param kind `hat` for access tokens of full accounts, `hgt` for access tokens of guests, `hrt` for refresh tokens;
 * the prefix makes leaked tokens recognizable
 * @param guestKey key of the tokens of guests
 */
export function newToken(randomness: Randomness, kind: 'hat' | 'hgt' | 'hrt', guestKey: Uint8Array): Token {
  const secret = `${kind}_${randomString(randomness, tokenLength)}`;
  return { id: randomId(randomness), secret, hash: hashAccessToken(secret, guestKey) };
}

/**
 * Returns the hash that is stored for a token: a MAC for the access token of a guest, a digest for other tokens. So the
 * tokens of all guests become invalid when an operator replaces `macaroon_secret_key`, from which `guestKey` is made.
 */
export function hashAccessToken(secret: string, guestKey: Uint8Array): string {
  if (!secret.startsWith('hgt_')) return hashToken(secret);
  return createHmac('sha256', guestKey).update(secret).digest('base64url');
}

/**
 * Returns the SHA-256 of a token in base64url. A slow hash is not needed because tokens are long and random.
 */
export const hashToken = (secret: string) => hash('sha256', secret, 'base64url');

/** Returns a positive number of 48 bits. */
function randomId(randomness: Randomness): number {
  const bytes = randomness.bytes(6);
  return Buffer.from(bytes.buffer, bytes.byteOffset, 6).readUIntBE(0, 6) + 1;
}

/** Returns a positive number of 48 bits that identifies a token of the delegated authentication service. */
export const idOfForeignToken = (secret: string): number =>
  Number.parseInt(hash('sha256', secret, 'hex').slice(0, 12), 16) + 1;
