import { randomBytes } from 'node:crypto';

/** Source of randomness for the whole program; tests and the simulator pass a seeded one. */
export interface Randomness {
  bytes(length: number): Uint8Array;
}

/** Cryptographically strong randomness of the machine. */
export const systemRandomness: Randomness = { bytes: (length) => randomBytes(length) };

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const alphanumerics = `${letters}0123456789`;

/** Returns `length` characters from `alphabet` (at most 256 characters), each equally likely. */
export function randomString(
  randomness: Randomness,
  length: number,
  alphabet: string = alphanumerics,
): string {
  const limit = 256 - (256 % alphabet.length);
  let text = '';
  while (text.length < length) {
    for (const byte of randomness.bytes((length - text.length) * 2)) {
      if (byte < limit && text.length < length) text += alphabet[byte % alphabet.length];
    }
  }
  return text;
}

/**
 * Number of letters in the opaque part of the room ids and event ids that this server makes. So many random letters
 * never repeat in practice.
 */
export const opaqueIdLength = 18;

/** Returns `length` letters, for room ids, device ids and similar identifiers. */
export const randomLetters = (randomness: Randomness, length: number) =>
  randomString(randomness, length, letters);

/** Returns a number in [0, 1), for jitter and sampling. */
export function randomFraction(randomness: Randomness): number {
  const bytes = randomness.bytes(4);
  return new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0) / 2 ** 32;
}
