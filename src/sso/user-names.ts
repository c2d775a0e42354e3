/** Characters that user ids may contain, except `=`, which begins the code of another character. */
const plain = /^[a-z0-9._\-/+]$/;

/**
 * Returns a local part for any name: small letters, and other characters as `=` with the two hexadecimal digits of each
 * byte.
 */
export function hexEncodedName(name: string): string {
  const bytes = [...Buffer.from(name.toLowerCase())];
  const encoded = bytes.map((byte) => {
    const character = String.fromCharCode(byte);
    return byte < 128 && plain.test(character) ? character : `=${byte.toString(16).padStart(2, '0')}`;
  });
  return encoded.join('').replace(/^_/, '=5f');
}

/** Returns a local part for any name: small letters, and dots in place of characters that user ids cannot contain. */
export const dotReplacedName = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9._=\-/+]/gu, '.')
    .replace(/^_/, '');
