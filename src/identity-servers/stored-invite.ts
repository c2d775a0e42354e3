import { isJsonObject, type JsonObject } from '../protocol/index.ts';

/** A key with which an identity server says that an invite is redeemed by the right person. */
export interface InviteKey {
  /** Base64. */
  readonly publicKey: string;
  /** Where it can be asked whether the key still counts. */
  readonly validityUrl: string | undefined;
}

/** What an identity server makes of an invite. */
export interface StoredInvite {
  /** Becomes the state key. */
  readonly token: string;
  /** Stands for the address where others can see it. */
  readonly displayName: string;
  /** At least one. */
  readonly keys: readonly [InviteKey, ...InviteKey[]];
}

/** Keys of one invite; identity servers give two. */
const maxKeys = 16;

/** @returns `undefined` when it is not as it should be */
export function readStoredInvite(json: JsonObject): StoredInvite | undefined {
  const { token, display_name: displayName } = json;
  if (typeof token !== 'string' || !/^[0-9a-zA-Z.=_-]{1,255}$/.test(token)) return undefined;
  if (typeof displayName !== 'string' || displayName.length > 1_000) return undefined;
  const [first, ...others] = readInviteKeys(json);
  return first && { token, displayName, keys: [first, ...others] };
}

/** The keys in an answer of an identity server, or in an `m.room.third_party_invite`, whose contents are alike. */
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
