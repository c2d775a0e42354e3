import { type KeyObject, verify } from 'node:crypto';

/** A signature over a text in UTF-8, and the Ed25519 key that may have made it. */
export interface SignatureToVerify {
  readonly key: KeyObject;
  readonly text: string;
  readonly signature: Uint8Array;
}

/** Signatures under way at a time: the platform's threads have other work, too, which shall not wait for long. */
const atOnce = 16;

/** Verifies many signatures on the platform's own threads. @returns whether each is right; malformed ones are not */
export async function verifyInBackground(signatures: readonly SignatureToVerify[]): Promise<boolean[]> {
  const right = new Array<boolean>(signatures.length).fill(false);
  let next = 0;
  const verifyOn = async () => {
    while (next < signatures.length) {
      const index = next++;
      right[index] = await isRight(signatures[index]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, signatures.length) }, verifyOn));
  return right;
}

function isRight({ key, text, signature }: SignatureToVerify): Promise<boolean> {
  return new Promise((resolve) => {
    verify(null, Buffer.from(text), key, signature, (error, isValid) => resolve(!error && isValid));
  });
}
