import { type KeyObject, sign } from 'node:crypto';

/**
 * Signs text in UTF-8 on the platform's thread pool, so that the calling thread is free in the meantime.
 * @returns the Ed25519 signature as unpadded base64
 */
export function signInBackground(key: KeyObject, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    sign(null, Buffer.from(text), key, (error, signature) => {
      if (error) reject(error);
      else resolve(signature.toString('base64').replace(/=+$/, ''));
    });
  });
}
