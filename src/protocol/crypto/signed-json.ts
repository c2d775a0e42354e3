import type { Signatures } from '../event.ts';
import { canonicalJson } from '../json/canonical-json.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import type { SigningKey, VerifyKey } from './ed25519.ts';

/**
 * Returns the text that signatures of a JSON object cover: its canonical JSON without `signatures` and
 * `unsigned`.
 */
export function signingInput(object: JsonObject): string {
  const { signatures: _signatures, unsigned: _unsigned, ...signed } = object;
  return canonicalJson(signed, 'as written');
}

/**
 * Signs a JSON object. Keeps the signatures that the object already has.
 * Source: appendices, "Signing Details".
 * @param entity the server name; for device keys, the user id
 * @throws MatrixError M_BAD_JSON if the object has no canonical form
 */
export function signJson<T extends JsonObject>(
  object: T,
  entity: string,
  key: SigningKey,
): T & { readonly signatures: Signatures } {
  return {
    ...object,
    signatures: withSignature(object.signatures, entity, key.keyId, key.sign(signingInput(object))),
  };
}

/** Adds one signature to a `signatures` object. Replaces fields that are not objects. */
export function withSignature(before: unknown, entity: string, keyId: string, signature: string): Signatures {
  const signatures = isJsonObject(before) ? (before as Signatures) : {};
  const found: unknown = Object.hasOwn(signatures, entity) ? signatures[entity] : undefined;
  const entitySignatures = isJsonObject(found) ? (found as Signatures[string]) : {};
  return { ...signatures, [entity]: { ...entitySignatures, [keyId]: signature } };
}

/** Returns the Ed25519 signatures of one entity on an object, as pairs of key id and base64. */
export function signaturesOf(object: JsonObject, entity: string): readonly [keyId: string, text: string][] {
  const all = object.signatures;
  if (!isJsonObject(all) || !Object.hasOwn(all, entity)) return [];
  const entitySignatures = all[entity];
  if (!isJsonObject(entitySignatures)) return [];
  return Object.entries(entitySignatures).filter(
    (entry): entry is [string, string] => entry[0].startsWith('ed25519:') && typeof entry[1] === 'string',
  );
}

/**
 * Whether an entity has signed a JSON object: at least one of the entity's signatures is by a known key, and all of
 * the entity's signatures by known keys are correct. Never throws.
 * Source: appendices, "Checking for a Signature".
 * @param keyOf returns the entity's key of that id; `undefined` if it is not known or not trusted
 */
export function verifyJson(
  object: JsonObject,
  entity: string,
  keyOf: (keyId: string) => VerifyKey | undefined,
): boolean {
  const known = signaturesOf(object, entity).flatMap(([keyId, signature]) => {
    const key = keyOf(keyId);
    return key === undefined ? [] : [{ key, signature }];
  });
  if (known.length === 0) return false;
  try {
    const text = signingInput(object);
    return known.every(({ key, signature }) => key.verifies(text, signature));
  } catch {
    return false;
  }
}
