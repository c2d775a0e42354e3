import { isJsonObject, type JsonObject } from '../protocol/index.ts';

/**
 * A public key of an identity server. Its signature proves that the person who redeems an invite is the invited one.
 */
export interface InviteKey {
  /** Base64. */
  readonly publicKey: string;
  /** The URL at which the identity server reports whether the key is still valid. */
  readonly validityUrl: string | undefined;
}

/** The response of an identity server that has stored an invite. */
export interface StoredInvite {
  /** The state key of the `m.room.third_party_invite` event. */
  readonly token: string;
  /** Public text shown instead of the address. */
  readonly displayName: string;
  /** At least one key. */
  readonly keys: readonly [InviteKey, ...InviteKey[]];
}

/** Maximum keys of one invite; identity servers send two. */
const maxKeys = 16;

/** Maximum characters of the text that is shown instead of the address. */
const maxDisplayName = 1_000;

/** Reads a response. @returns `undefined` when it is invalid */
export function readStoredInvite(json: JsonObject): StoredInvite | undefined {
  const { token, display_name: displayName } = json;
  if (typeof token !== 'string' || !/^[0-9a-zA-Z.=_-]{1,255}$/.test(token)) return undefined;
  if (typeof displayName !== 'string' || displayName.length > maxDisplayName) return undefined;
  const [first, ...others] = readInviteKeys(json);
  return first && { token, displayName, keys: [first, ...others] };
}

/** Reads the keys of a response or of an `m.room.third_party_invite` event, which have the same format. */
export function readInviteKeys(content: JsonObject): InviteKey[] {
  const { public_keys: listed } = content;
  const entries = [content, ...(Array.isArray(listed) ? listed : [])];
  const keys = new Map<string, InviteKey>();
  for (const entry of entries) {
    if (!isJsonObject(entry)) continue;
    const { public_key: publicKey, key_validity_url: url } = entry;
    if (typeof publicKey !== 'string' || keys.has(publicKey)) continue;
    if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(publicKey)) continue;
    keys.set(publicKey, { publicKey, validityUrl: typeof url === 'string' ? url : undefined });
    if (keys.size === maxKeys) break;
  }
  return [...keys.values()];
}
