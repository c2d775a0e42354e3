import { type KeyObject, verify } from 'node:crypto';

/** A signature over bytes, or over a text in UTF-8, and the Ed25519 public key to verify it with. */
export interface SignatureToVerify {
  readonly key: KeyObject;
  readonly text: string | Buffer;
  readonly signature: Uint8Array;
}

/** Maximum number of concurrent verifications, so that other work on Node's thread pool does not wait long. */
const maxConcurrent = 16;

/**
 * Verifies many signatures on Node's thread pool.
 * @returns whether each signature is valid, in the order of `signatures`; malformed signatures are invalid
 */
export async function verifyInBackground(signatures: readonly SignatureToVerify[]): Promise<boolean[]> {
  const valid = new Array<boolean>(signatures.length).fill(false);
  let next = 0;
  const verifyRemaining = async () => {
    while (next < signatures.length) {
      const index = next++;
      valid[index] = await isValidSignature(signatures[index]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(maxConcurrent, signatures.length) }, verifyRemaining));
  return valid;
}

function isValidSignature({ key, text, signature }: SignatureToVerify): Promise<boolean> {
  return new Promise((resolve) => {
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    verify(null, bytes, key, signature, (error, isValid) => resolve(!error && isValid));
  });
}
