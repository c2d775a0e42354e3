import { type KeyObject, sign } from 'node:crypto';
import { createRequire } from 'node:module';

/**
 * Signs a text in UTF-8.
 * @returns the signature as unpadded base64
 */
export type SignText = (text: string) => string;

/** The functions of libsodium in use. Each writes its results into its first one or two parameters. */
export interface Sodium {
  crypto_sign_seed_keypair(publicKey: Uint8Array, secretKey: Uint8Array, seed: Uint8Array): void;
  crypto_sign_detached(signature: Uint8Array, message: Uint8Array, secretKey: Uint8Array): void;
}

const publicKeyBytes = 32;
const secretKeyBytes = 64;
const signatureBytes = 64;
const signatureCharacters = 86;

/**
 * Returns a function that signs with `key`. It uses libsodium, which takes half the time of Node's crypto module. Where
 * libsodium has no build for this machine, it uses Node's module. Both make the same signatures (RFC 8032).
 * @param key an Ed25519 private key
 */
export function signingWith(key: KeyObject): SignText {
  const sodium = loadedSodium();
  return sodium ? signingBySodium(sodium, key) : signingByPlatform(key);
}

/** Returns a function that signs with `key` by the crypto module of Node. @param key an Ed25519 private key */
export function signingByPlatform(key: KeyObject): SignText {
  return (text) => unpadded(sign(null, Buffer.from(text), key));
}

/** Returns a function that signs with `key` by libsodium. @param key an Ed25519 private key */
export function signingBySodium(sodium: Sodium, key: KeyObject): SignText {
  const secretKey = Buffer.alloc(secretKeyBytes);
  const seed = Buffer.from(key.export({ format: 'jwk' }).d ?? '', 'base64url');
  sodium.crypto_sign_seed_keypair(Buffer.alloc(publicKeyBytes), secretKey, seed);
  const signature = Buffer.alloc(signatureBytes);
  return (text) => {
    sodium.crypto_sign_detached(signature, Buffer.from(text), secretKey);
    return unpadded(signature);
  };
}

const unpadded = (signature: Buffer) => signature.toString('base64').slice(0, signatureCharacters);

let loaded: { readonly sodium: Sodium | undefined } | undefined;

/**
 * Returns libsodium, which is loaded at the first use to keep the start short. `undefined` when libsodium has no build
 * for this machine.
 */
export function loadedSodium(): Sodium | undefined {
  loaded ??= { sodium: load() };
  return loaded.sodium;
}

function load(): Sodium | undefined {
  try {
    return createRequire(import.meta.url)('sodium-native') as Sodium;
  } catch {
    return undefined;
  }
}
