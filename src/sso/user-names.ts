/**
 * Characters that are not encoded: those that user ids may contain, except `=`, which begins an encoded byte.
 */
const plain = /^[a-z0-9._\-/+]$/;

/**
 * Returns a local part for any name: the name in lowercase, with `=` and two hexadecimal digits in place of each byte
 * of a character that is not `plain`, and of an underscore at the beginning.
 */
export function hexEncodedName(name: string): string {
  const bytes = [...Buffer.from(name.toLowerCase())];
  const encoded = bytes.map((byte) => {
    const character = String.fromCharCode(byte);
    return byte < 128 && plain.test(character) ? character : `=${byte.toString(16).padStart(2, '0')}`;
  });
  return encoded.join('').replace(/^_/, '=5f');
}

/**
 * Returns a local part for any name: the name in lowercase, with a dot in place of each character that user ids cannot
 * contain, and without an underscore at the beginning.
 */
export const dotReplacedName = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9._=\-/+]/gu, '.')
    .replace(/^_/, '');
