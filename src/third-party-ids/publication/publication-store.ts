import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { ThirdPartyIdTables } from '../tables.ts';

/** The record that an address of a user is published at an identity server. */
export type PublicationRow = ThirdPartyIdTables['published_third_party_ids'];

/** Maximum number of published addresses of one user that are remembered. */
const maxPerUser = 100;

/** Returns where the addresses of a user are published: at most `maxPerUser` records. */
export function listPublished(reader: Reader<ThirdPartyIdTables>, userId: string): Promise<PublicationRow[]> {
  return reader
    .selectFrom('published_third_party_ids')
    .selectAll()
    .where('user_id', '=', userId)
    .limit(maxPerUser)
    .execute();
}

/**
 * Records that an address of a user was published at an identity server; does nothing when the user has `maxPerUser`
 * records.
 */
export async function insertPublished(
  writer: Writer<ThirdPartyIdTables>,
  row: PublicationRow,
): Promise<void> {
  const known = await listPublished(writer, row.user_id);
  if (known.length >= maxPerUser) return;
  await writer
    .insertInto('published_third_party_ids')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Deletes the record that an address of a user is published at an identity server. */
export async function deletePublished(
  writer: Writer<ThirdPartyIdTables>,
  row: PublicationRow,
): Promise<void> {
  await writer
    .deleteFrom('published_third_party_ids')
    .where('user_id', '=', row.user_id)
    .where('medium', '=', row.medium)
    .where('address', '=', row.address)
    .where('server', '=', row.server)
    .execute();
}
