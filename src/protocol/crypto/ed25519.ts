import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { decodeBase64, encodeBase64 } from './base64.ts';

/** The DER that precedes the 32 bytes of a raw key. Source: RFC 8410, section 10. */
const PUBLIC_KEY_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const PRIVATE_KEY_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;

/** An Ed25519 public key. Importing a key is slow, so keep the object. */
export class VerifyKey {
  /** Unpadded base64 of the 32 bytes, as in key responses. */
  readonly base64: string;
  readonly #key: KeyObject;

  private constructor(base64: string, key: KeyObject) {
    this.base64 = base64;
    this.#key = key;
  }

  /** @returns `undefined` if the text is not a public key in base64 */
  static fromBase64(text: string): VerifyKey | undefined {
    const bytes = decodeBase64(text);
    if (bytes?.length !== KEY_BYTES) return undefined;
    const der = Buffer.concat([PUBLIC_KEY_PREFIX, bytes]);
    return new VerifyKey(encodeBase64(bytes), createPublicKey({ key: der, format: 'der', type: 'spki' }));
  }

  /** The key as `node:crypto` needs it, for verifying on other threads. */
  get publicKey(): KeyObject {
    return this.#key;
  }

  /** Whether the base64 signature is valid for the text in UTF-8. False for malformed signatures. */
  verifies(text: string, signature: string): boolean {
    const bytes = decodeBase64(signature);
    return bytes?.length === SIGNATURE_BYTES && verify(null, Buffer.from(text), this.#key, bytes);
  }
}

/** An Ed25519 private key, and the key id of its signatures. */
export class SigningKey {
  /** `ed25519:<name>`. */
  readonly keyId: string;
  /** The part of the key id after the colon. */
  readonly name: string;
  readonly publicKey: VerifyKey;
  readonly #seed: Uint8Array;
  readonly #key: KeyObject;

  private constructor(name: string, seed: Uint8Array) {
    this.name = name;
    this.keyId = `ed25519:${name}`;
    this.#seed = seed;
    const der = Buffer.concat([PRIVATE_KEY_PREFIX, seed]);
    this.#key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    this.publicKey = VerifyKey.fromBase64(rawBase64(createPublicKey(this.#key)))!;
  }

  /** @returns `undefined` unless the seed is 32 bytes. */
  static fromSeed(name: string, seed: Uint8Array): SigningKey | undefined {
    return seed.length === KEY_BYTES ? new SigningKey(name, seed) : undefined;
  }

  /** The key as `node:crypto` needs it, for signing on other threads. They sign the text in UTF-8. */
  get privateKey(): KeyObject {
    return this.#key;
  }

  /** Signs the text in UTF-8. @returns unpadded base64 */
  sign(text: string): string {
    return encodeBase64(sign(null, Buffer.from(text), this.#key));
  }

  /** Returns the secret seed as unpadded base64, for the signing key file only. */
  exportSeed(): string {
    return encodeBase64(this.#seed);
  }

  /** Keeps the secret out of logs. */
  toJSON(): string {
    return this.keyId;
  }
}

function rawBase64(key: KeyObject): string {
  return encodeBase64(key.export({ format: 'der', type: 'spki' }).subarray(PUBLIC_KEY_PREFIX.length));
}
