import { hash } from 'node:crypto';
import type { Reader, Writer } from '../../kernel/database/index.ts';
import { type ServerKey, VerifyKey } from '../../protocol/index.ts';
import type { KeyResponse } from './key-response.ts';
import type { KeyTables } from './tables.ts';

/**
 * A key with a stored response. This server passes the response on when it is asked as a notary, a server that answers
 * for the keys of other servers.
 */
export interface KeyInResponse {
  readonly keyId: string;
  readonly responseId: string;
  readonly validUntilTs: number;
  readonly fetchedTs: number;
  readonly isRetired: boolean;
}

/** Maximum number of stored keys of one server; further keys are not stored. */
const maxKeys = 1_000;

/** Maximum number of stored responses of one server; the oldest texts are deleted, and their keys stay. */
const maxResponses = 4;

/** A stored key. */
export interface StoredKey extends ServerKey {
  /** Whether the key was needed to verify events. */
  readonly isForEvents: boolean;
}

/** Reads a key of a server; `undefined` when it is not stored. */
export async function readKey(
  reader: Reader<KeyTables>,
  serverName: string,
  keyId: string,
): Promise<StoredKey | undefined> {
  const row = await reader
    .selectFrom('server_keys')
    .select(['public_key', 'valid_until_ts', 'expired_ts', 'for_events'])
    .where('server_name', '=', serverName)
    .where('key_id', '=', keyId)
    .executeTakeFirst();
  const key = row && VerifyKey.fromBase64(row.public_key);
  if (!row || !key) return undefined;
  return {
    key,
    validUntilTs: row.valid_until_ts,
    expiredTs: row.expired_ts ?? undefined,
    isForEvents: row.for_events === 1,
  };
}

/** The statement that marks keys as needed to verify events. Each row: server name, key id. */
export const markForEvents = 'update server_keys set for_events = 1 where server_name = ? and key_id = ?';

/**
 * Reads the keys of a server that have a stored response, newest first. Leaves out the texts of the responses, because
 * they can be long.
 */
export async function readKeysInResponses(
  reader: Reader<KeyTables>,
  serverName: string,
): Promise<readonly KeyInResponse[]> {
  const rows = await reader
    .selectFrom('server_keys')
    .innerJoin('server_key_responses', (join) =>
      join
        .onRef('server_key_responses.server_name', '=', 'server_keys.server_name')
        .onRef('server_key_responses.response_id', '=', 'server_keys.response_id'),
    )
    .select([
      'server_keys.key_id as keyId',
      'server_keys.response_id as responseId',
      'server_keys.valid_until_ts as validUntilTs',
      'server_keys.fetched_ts as fetchedTs',
      'server_keys.expired_ts as expiredTs',
    ])
    .where('server_keys.server_name', '=', serverName)
    .orderBy('server_keys.fetched_ts', 'desc')
    .orderBy('server_keys.key_id')
    .limit(maxKeys)
    .execute();
  return rows.map(({ expiredTs, ...row }) => ({ ...row, isRetired: expiredTs !== null }));
}

/**
 * Reads the texts of stored responses of a server, newest first. At most `maxResponses` texts are stored, each with at
 * most `maxResponseBytes` bytes.
 */
export async function readTexts(
  reader: Reader<KeyTables>,
  serverName: string,
  responseIds: readonly string[],
): Promise<readonly string[]> {
  if (responseIds.length === 0) return [];
  const rows = await reader
    .selectFrom('server_key_responses')
    .select('text')
    .where('server_name', '=', serverName)
    .where('response_id', 'in', responseIds)
    .orderBy('fetched_ts', 'desc')
    .orderBy('response_id')
    .execute();
  return rows.map(({ text }) => text);
}

/**
 * Stores the keys of a response. A response of the owner replaces the stored keys with the same ids. A response of a
 * notary may be old, so it does not replace a stored key whose validity ends later. An expired response of the owner
 * does not replace such a key either.
 * @returns the stored keys
 */
export async function saveResponse(
  writer: Writer<KeyTables>,
  response: KeyResponse,
  isFromOwner: boolean,
  fetchedTs: number,
): Promise<ReadonlyMap<string, ServerKey>> {
  const { serverName, keys } = response;
  const rows = await writer
    .selectFrom('server_keys')
    .select(['key_id', 'valid_until_ts', 'response_id'])
    .where('server_name', '=', serverName)
    .execute();
  const known = new Map(rows.map((row) => [row.key_id, row]));
  let count = known.size;
  const savedKeys = new Map<string, ServerKey>();
  for (const [keyId, key] of keys) {
    const before = known.get(keyId)?.valid_until_ts;
    const isSaved =
      before === undefined
        ? count++ < maxKeys
        : (isFromOwner && key.validUntilTs >= fetchedTs) || before <= key.validUntilTs;
    if (isSaved) savedKeys.set(keyId, key);
  }
  if (savedKeys.size === 0) return savedKeys;
  const responseId = await insertResponse(writer, response, fetchedTs);
  await insertKeys(writer, serverName, savedKeys, { response_id: responseId, fetched_ts: fetchedTs });
  if (rows.length > 0) {
    const otherResponseIds = rows
      .filter(({ key_id }) => !savedKeys.has(key_id))
      .map(({ response_id }) => response_id);
    await deleteOldResponses(writer, serverName, new Set([responseId, ...otherResponseIds]));
  }
  return savedKeys;
}

/** Stores the text of a response once, however many keys it has. @returns the id of the stored response */
async function insertResponse(
  writer: Writer<KeyTables>,
  { serverName, text }: KeyResponse,
  fetchedTs: number,
): Promise<string> {
  const responseId = hash('sha256', text, 'base64url');
  await writer
    .insertInto('server_key_responses')
    .values({ server_name: serverName, response_id: responseId, text, fetched_ts: fetchedTs })
    .onConflict((conflict) =>
      conflict.columns(['server_name', 'response_id']).doUpdateSet({ fetched_ts: fetchedTs }),
    )
    .execute();
  return responseId;
}

async function insertKeys(
  writer: Writer<KeyTables>,
  serverName: string,
  keys: ReadonlyMap<string, ServerKey>,
  source: { readonly response_id: string; readonly fetched_ts: number },
): Promise<void> {
  const rows = [...keys].map(([keyId, { key, validUntilTs, expiredTs }]) => ({
    server_name: serverName,
    key_id: keyId,
    public_key: key.base64,
    valid_until_ts: validUntilTs,
    expired_ts: expiredTs ?? null,
    ...source,
  }));
  await writer
    .insertInto('server_keys')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['server_name', 'key_id']).doUpdateSet(({ ref }) => ({
        public_key: ref('excluded.public_key'),
        valid_until_ts: ref('excluded.valid_until_ts'),
        expired_ts: ref('excluded.expired_ts'),
        fetched_ts: ref('excluded.fetched_ts'),
        response_id: ref('excluded.response_id'),
      })),
    )
    .execute();
}

/** Deletes the responses whose keys have all been replaced, and the oldest responses beyond `maxResponses`. */
async function deleteOldResponses(
  writer: Writer<KeyTables>,
  serverName: string,
  inUse: ReadonlySet<string>,
): Promise<void> {
  const stored = await writer
    .selectFrom('server_key_responses')
    .select('response_id as id')
    .where('server_name', '=', serverName)
    .orderBy('fetched_ts', 'desc')
    .orderBy('response_id')
    .execute();
  const keptResponses = new Set(stored.filter(({ id }) => inUse.has(id)).slice(0, maxResponses));
  const old = stored.filter((response) => !keptResponses.has(response)).map(({ id }) => id);
  if (old.length === 0) return;
  await writer
    .deleteFrom('server_key_responses')
    .where('server_name', '=', serverName)
    .where('response_id', 'in', old)
    .execute();
}
