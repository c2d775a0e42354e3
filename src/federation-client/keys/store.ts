import type { Reader, Writer } from '../../kernel/database/index.ts';
import { type ServerKey, VerifyKey } from '../../protocol/index.ts';
import type { KeyResponse } from './key-response.ts';
import type { KeyTables } from './tables.ts';

/** A stored response with the keys of another server, for answering as a notary. */
export interface StoredResponse {
  readonly keyId: string;
  readonly text: string;
  readonly validUntilTs: number;
  readonly fetchedTs: number;
  readonly isRetired: boolean;
}

export async function readKey(
  reader: Reader<KeyTables>,
  serverName: string,
  keyId: string,
): Promise<ServerKey | undefined> {
  const row = await reader
    .selectFrom('server_keys')
    .select(['public_key', 'valid_until_ts', 'expired_ts'])
    .where('server_name', '=', serverName)
    .where('key_id', '=', keyId)
    .executeTakeFirst();
  const key = row && VerifyKey.fromBase64(row.public_key);
  if (!row || !key) return undefined;
  return { key, validUntilTs: row.valid_until_ts, expiredTs: row.expired_ts ?? undefined };
}

/** Reads the stored responses of a server, newest first. */
export async function readResponses(
  reader: Reader<KeyTables>,
  serverName: string,
): Promise<readonly StoredResponse[]> {
  const rows = await reader
    .selectFrom('server_keys')
    .select(['key_id', 'response', 'valid_until_ts', 'expired_ts', 'fetched_ts'])
    .where('server_name', '=', serverName)
    .orderBy('fetched_ts', 'desc')
    .orderBy('key_id')
    .limit(maxRows)
    .execute();
  return rows.map((row) => ({
    keyId: row.key_id,
    text: row.response,
    validUntilTs: row.valid_until_ts,
    fetchedTs: row.fetched_ts,
    isRetired: row.expired_ts !== null,
  }));
}

/** Maximum stored keys of one server; further keys are not stored. */
const maxRows = 1_000;

/**
 * Stores the keys of a response. A response of the owner replaces stored keys. A response of a notary
 * replaces only keys that are not valid for longer, since notaries may serve old responses. The same holds
 * for an owner whose response has already expired.
 * @returns the stored keys
 */
export async function saveResponse(
  writer: Writer<KeyTables>,
  { serverName, keys, text }: KeyResponse,
  isFromOwner: boolean,
  fetchedTs: number,
): Promise<ReadonlyMap<string, ServerKey>> {
  const rows = await writer
    .selectFrom('server_keys')
    .select(['key_id', 'valid_until_ts'])
    .where('server_name', '=', serverName)
    .limit(maxRows + 1)
    .execute();
  const known = new Map(rows.map((row) => [row.key_id, row.valid_until_ts]));
  const taken = [...keys].filter(([keyId, { validUntilTs }]) => {
    const before = known.get(keyId);
    if (before === undefined) return known.size < maxRows;
    return (isFromOwner && validUntilTs >= fetchedTs) || before <= validUntilTs;
  });
  for (const [keyId, { key, validUntilTs, expiredTs }] of taken) {
    const values = {
      public_key: key.base64,
      valid_until_ts: validUntilTs,
      expired_ts: expiredTs ?? null,
      fetched_ts: fetchedTs,
      response: text,
    };
    await writer
      .insertInto('server_keys')
      .values({ server_name: serverName, key_id: keyId, ...values })
      .onConflict((conflict) => conflict.columns(['server_name', 'key_id']).doUpdateSet(values))
      .execute();
  }
  return new Map(taken);
}
