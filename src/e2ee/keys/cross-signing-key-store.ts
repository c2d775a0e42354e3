import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { E2eeTables } from '../tables.ts';

/** The purpose of a cross-signing key. */
export type KeyUsage = 'master' | 'self_signing' | 'user_signing';

export interface StoredCrossSigningKey {
  readonly publicKey: string;
  readonly object: JsonObject;
}

/** Maximum number of users in one query. */
const chunkSize = 500;

export async function readCrossSigningKeys(
  reader: Reader<E2eeTables>,
  userId: string,
): Promise<ReadonlyMap<KeyUsage, StoredCrossSigningKey>> {
  return (await readCrossSigningKeysOf(reader, [userId])).get(userId) ?? new Map();
}

/** Returns the keys of several users by user id. */
export async function readCrossSigningKeysOf(
  reader: Reader<E2eeTables>,
  userIds: readonly string[],
): Promise<ReadonlyMap<string, ReadonlyMap<KeyUsage, StoredCrossSigningKey>>> {
  const keysByUser = new Map<string, Map<KeyUsage, StoredCrossSigningKey>>();
  for (let start = 0; start < userIds.length; start += chunkSize) {
    const rows = await reader
      .selectFrom('cross_signing_keys')
      .selectAll()
      .where('user_id', 'in', userIds.slice(start, start + chunkSize))
      .execute();
    for (const row of rows) {
      const userKeys = keysByUser.get(row.user_id) ?? new Map<KeyUsage, StoredCrossSigningKey>();
      keysByUser.set(row.user_id, userKeys);
      userKeys.set(row.usage as KeyUsage, {
        publicKey: row.public_key,
        object: JSON.parse(row.keys) as JsonObject,
      });
    }
  }
  return keysByUser;
}

export async function writeCrossSigningKey(
  writer: Writer<E2eeTables>,
  userId: string,
  usage: KeyUsage,
  { publicKey, object }: StoredCrossSigningKey,
): Promise<void> {
  const columns = { public_key: publicKey, keys: JSON.stringify(object) };
  await writer
    .insertInto('cross_signing_keys')
    .values({ user_id: userId, usage, ...columns })
    .onConflict((conflict) => conflict.columns(['user_id', 'usage']).doUpdateSet(columns))
    .execute();
}

export async function deleteCrossSigningKey(
  writer: Writer<E2eeTables>,
  userId: string,
  usage: KeyUsage,
): Promise<void> {
  await writer
    .deleteFrom('cross_signing_keys')
    .where('user_id', '=', userId)
    .where('usage', '=', usage)
    .execute();
}
