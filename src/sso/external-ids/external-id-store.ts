import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { SsoTables } from '../tables.ts';

/** A user of an identity provider. */
export interface ExternalId {
  readonly provider: string;
  readonly externalId: string;
}

export async function findUserOf(
  reader: Reader<SsoTables>,
  { provider, externalId }: ExternalId,
): Promise<string | undefined> {
  const row = await reader
    .selectFrom('external_ids')
    .select('user_id')
    .where('auth_provider', '=', provider)
    .where('external_id', '=', externalId)
    .executeTakeFirst();
  return row?.user_id;
}

/** Returns the external ids of a user, ordered by provider and id. */
export async function externalIdsOf(reader: Reader<SsoTables>, userId: string): Promise<ExternalId[]> {
  const rows = await reader
    .selectFrom('external_ids')
    .select(['auth_provider', 'external_id'])
    .where('user_id', '=', userId)
    .orderBy('auth_provider')
    .orderBy('external_id')
    .execute();
  return rows.map((row) => ({ provider: row.auth_provider, externalId: row.external_id }));
}

/** Inserts an external id unless it belongs to a user. @returns whether it was inserted */
export async function insertExternalId(
  writer: Writer<SsoTables>,
  userId: string,
  { provider, externalId }: ExternalId,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await writer
    .insertInto('external_ids')
    .values({ auth_provider: provider, external_id: externalId, user_id: userId })
    .onConflict((conflict) => conflict.columns(['auth_provider', 'external_id']).doNothing())
    .executeTakeFirst();
  return (numInsertedOrUpdatedRows ?? 0n) > 0n;
}

export async function deleteExternalIdsOf(writer: Writer<SsoTables>, userId: string): Promise<void> {
  await writer.deleteFrom('external_ids').where('user_id', '=', userId).execute();
}
