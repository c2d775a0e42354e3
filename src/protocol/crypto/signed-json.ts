import type { Signatures } from '../event.ts';
import { canonicalJson } from '../json/canonical-json.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import type { SigningKey, VerifyKey } from './ed25519.ts';

/** What a signature of a JSON object covers: all but `signatures` and `unsigned`. */
export function signingInput(object: JsonObject): string {
  const { signatures: _signatures, unsigned: _unsigned, ...signed } = object;
  return canonicalJson(signed, 'as written');
}

/**
 * The object with one more signature; others that it had stay.
 * Source: appendices, "Signing Details".
 * @param entity The server name, or for keys of devices the user id.
 * @throws MatrixError M_BAD_JSON if it has no canonical form.
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

/** The `signatures` object with one more signature in it. What was no object before is replaced. */
export function withSignature(before: unknown, entity: string, keyId: string, signature: string): Signatures {
  const signatures = isJsonObject(before) ? (before as Signatures) : {};
  const own: unknown = Object.hasOwn(signatures, entity) ? signatures[entity] : undefined;
  const ofEntity = isJsonObject(own) ? (own as Signatures[string]) : {};
  return { ...signatures, [entity]: { ...ofEntity, [keyId]: signature } };
}

/** The Ed25519 signatures of one entity on an object: pairs of key id and base64. */
export function signaturesOf(object: JsonObject, entity: string): readonly [keyId: string, text: string][] {
  const all = object.signatures;
  if (!isJsonObject(all) || !Object.hasOwn(all, entity)) return [];
  const own = all[entity];
  if (!isJsonObject(own)) return [];
  return Object.entries(own).filter(
    (entry): entry is [string, string] => entry[0].startsWith('ed25519:') && typeof entry[1] === 'string',
  );
}

/**
 * Whether an entity has signed a JSON object: at least one of its signatures is from a known key, and all that are
 * from known keys are valid. Never throws.
 * Source: appendices, "Checking for a Signature".
 * @param keyOf The entity's key of that id, or `undefined` if it is unknown or not to be trusted.
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
