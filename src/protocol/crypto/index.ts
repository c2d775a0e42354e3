export { isSignedWithAnyKey } from './any-key.ts';
export { decodeBase64, encodeBase64 } from './base64.ts';
export { SigningKey, VerifyKey } from './ed25519.ts';
export {
  isSignedByServer,
  requiredSigners,
  type ServerKey,
  type ServerKeyLookup,
  type VerifySignature,
} from './event-signatures.ts';
export { sha256Base64, sha256Base64Url } from './sha256.ts';
export { signJson, verifyJson } from './signed-json.ts';
export { readSigningKeys, writeSigningKeys } from './signing-key-file.ts';
