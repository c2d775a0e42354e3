import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import type { Randomness } from '../../kernel/randomness.ts';
import { canonicalJson, type JsonObject } from '../../protocol/index.ts';

/** Bytes of the nonce of AES-256-GCM. */
const nonceLength = 12;

/** Bytes of the tag of AES-256-GCM. */
const tagLength = 16;

/** Derives a key from the session id. */
const keyOf = (session: string, purpose: 'body' | 'digest') =>
  new Uint8Array(hkdfSync('sha256', session, new Uint8Array(), `interactive session ${purpose}`, 32));

/**
 * Encrypts a request body, which may contain a password, with a key derived from the session id. Only the
 * hash of that id is stored, so the body can be decrypted only while the client continues the session.
 */
export function sealBody(body: JsonObject, session: string, randomness: Randomness): Uint8Array {
  const nonce = randomness.bytes(nonceLength);
  const cipher = createCipheriv('aes-256-gcm', keyOf(session, 'body'), nonce);
  const text = Buffer.concat([cipher.update(JSON.stringify(body)), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), text]);
}

/** Decrypts what `sealBody` has encrypted. @throws Error for another session id, or changed bytes */
export function openBody(sealed: Uint8Array, session: string): JsonObject {
  const decipher = createDecipheriv('aes-256-gcm', keyOf(session, 'body'), sealed.subarray(0, nonceLength));
  decipher.setAuthTag(sealed.subarray(nonceLength, nonceLength + tagLength));
  const text = Buffer.concat([decipher.update(sealed.subarray(nonceLength + tagLength)), decipher.final()]);
  return JSON.parse(text.toString('utf8')) as JsonObject;
}

/**
 * Returns a digest of the body that does not depend on the order of members. It is keyed by the session id, so that it
 * cannot be used to guess a password in the body.
 */
export const digestBody = (body: JsonObject, session: string) =>
  createHmac('sha256', keyOf(session, 'digest'))
    .update(canonicalJson(body, 'as written'))
    .digest('base64url');
