import { createCipheriv, createDecipheriv, hash, hkdfSync } from 'node:crypto';
import type { Randomness } from '../../kernel/randomness.ts';
import { canonicalJson, type JsonObject } from '../../protocol/index.ts';

/** Bytes of the nonce and of the tag of AES-256-GCM. */
const [nonceLength, tagLength] = [12, 16];

const keyOf = (session: string) =>
  new Uint8Array(hkdfSync('sha256', session, new Uint8Array(), 'interactive session body', 32));

/**
 * Encrypts a request body, which may contain a password, with a key derived from the session id. Only the
 * hash of that id is stored, so the body can be decrypted only while the client continues the session.
 */
export function sealBody(body: JsonObject, session: string, randomness: Randomness): Uint8Array {
  const nonce = randomness.bytes(nonceLength);
  const cipher = createCipheriv('aes-256-gcm', keyOf(session), nonce);
  const text = Buffer.concat([cipher.update(JSON.stringify(body)), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), text]);
}

export function openBody(sealed: Uint8Array, session: string): JsonObject {
  const decipher = createDecipheriv('aes-256-gcm', keyOf(session), sealed.subarray(0, nonceLength));
  decipher.setAuthTag(sealed.subarray(nonceLength, nonceLength + tagLength));
  const text = Buffer.concat([decipher.update(sealed.subarray(nonceLength + tagLength)), decipher.final()]);
  return JSON.parse(text.toString('utf8')) as JsonObject;
}

/** A digest of the body that does not depend on the order of members. */
export const digestBody = (body: JsonObject) =>
  hash('sha256', canonicalJson(body, 'as written'), 'base64url');
