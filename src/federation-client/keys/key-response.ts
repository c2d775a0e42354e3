import {
  canonicalJson,
  isJsonObject,
  isServerName,
  type JsonObject,
  type JsonValue,
  parseKeyId,
  type ServerKey,
  VerifyKey,
  verifyJson,
} from '../../protocol/index.ts';

/** The published keys of a server, verified. */
export interface KeyResponse {
  readonly serverName: string;
  /** The keys of the server, by key id. */
  readonly keys: ReadonlyMap<string, ServerKey>;
  /** Canonical JSON as signed, with all signatures. */
  readonly text: string;
}

/** Maximum validity in milliseconds, so that a stolen key expires. */
const maxValidity = 7 * 24 * 60 * 60 * 1000;

/** Maximum keys in one response; servers have a handful. */
const maxKeys = 200;

/** Maximum bytes of a response as canonical JSON; the responses of most servers have less than 1 KiB. */
export const maxResponseBytes = 32 * 1024;

/**
 * Reads a response and verifies that it is signed with one of the current keys it contains.
 * Source: server-server API, "Publishing Keys".
 * @param expected the required server name; any server when absent
 * @param now milliseconds since the epoch
 * @returns `undefined` when the response is invalid
 */
export function readKeyResponse(
  json: JsonValue | undefined,
  now: number,
  expected?: string,
): KeyResponse | undefined {
  if (!isJsonObject(json)) return undefined;
  const { server_name: serverName, valid_until_ts: validUntil } = json;
  if (!isServerName(serverName) || (expected !== undefined && serverName !== expected)) return undefined;
  if (!isTime(validUntil)) return undefined;
  const validUntilTs = Math.min(validUntil, now + maxValidity);
  const current = keysIn(json.verify_keys, () => ({ validUntilTs }));
  const old = keysIn(json.old_verify_keys, ({ expired_ts: expiredTs }) =>
    isTime(expiredTs) ? { validUntilTs, expiredTs } : undefined,
  );
  if (current.size + old.size > maxKeys) return undefined;
  if (!verifyJson(json, serverName, (keyId) => current.get(keyId)?.key)) return undefined;
  const text = canonicalJson(json, 'as written');
  if (Buffer.byteLength(text) > maxResponseBytes) return undefined;
  return { serverName, keys: new Map([...old, ...current]), text };
}

const isTime = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** Skips invalid keys and unknown algorithms. */
function keysIn(
  json: JsonValue | undefined,
  timesOf: (entry: JsonObject) => Omit<ServerKey, 'key'> | undefined,
): Map<string, ServerKey> {
  const keys = new Map<string, ServerKey>();
  if (!isJsonObject(json)) return keys;
  for (const [keyId, entry] of Object.entries(json).slice(0, maxKeys + 1)) {
    if (parseKeyId(keyId)?.algorithm !== 'ed25519' || !isJsonObject(entry)) continue;
    const times = timesOf(entry);
    const key = typeof entry.key === 'string' ? VerifyKey.fromBase64(entry.key) : undefined;
    if (key !== undefined && times !== undefined) keys.set(keyId, { key, ...times });
  }
  return keys;
}
