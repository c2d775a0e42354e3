import { isJsonObject, type JsonObject } from '../json.ts';
import { VerifyKey } from './ed25519.ts';
import { signaturesOf, signingInput } from './signed-json.ts';

/**
 * Maximum number of pairs of key and signature to try, so that checking one event cannot take seconds. Honest
 * invites need one or two.
 */
const MAX_ATTEMPTS = 256;

/**
 * Whether one of the keys has made at least one of an object's signatures, whichever entity it is listed under. Checks
 * `content.third_party_invite.signed` of an invite with the keys in the `m.room.third_party_invite` event. Never
 * throws.
 * Source: authorization rules, "If membership is invite" (rule 5.3.1.7 in room version 1).
 * @param publicKeys base64 in either alphabet; malformed keys are skipped
 */
export function isSignedWithAnyKey(signed: JsonObject, publicKeys: readonly string[]): boolean {
  const signers = isJsonObject(signed.signatures) ? Object.keys(signed.signatures) : [];
  const signatures = signers
    .flatMap((signer) => signaturesOf(signed, signer).map(([, signature]) => signature))
    .slice(0, MAX_ATTEMPTS);
  const keys = publicKeys.slice(0, Math.floor(MAX_ATTEMPTS / Math.max(1, signatures.length)));
  try {
    const text = signingInput(signed);
    return keys.some((encoded) => {
      const key = VerifyKey.fromBase64(encoded);
      return key !== undefined && signatures.some((signature) => key.verifies(text, signature));
    });
  } catch {
    return false;
  }
}
