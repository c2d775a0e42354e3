import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { ThirdPartyIdTables } from '../tables.ts';

export type AddressRow = ThirdPartyIdTables['third_party_ids'];

/** Returns the user id of the account that has an address. */
export async function findOwner(
  reader: Reader<ThirdPartyIdTables>,
  medium: string,
  address: string,
): Promise<string | undefined> {
  const row = await reader
    .selectFrom('third_party_ids')
    .select('user_id')
    .where('medium', '=', medium)
    .where('address', '=', address)
    .executeTakeFirst();
  return row?.user_id;
}

/** The addresses of an account, in the order in which they were added. */
export function listAddresses(reader: Reader<ThirdPartyIdTables>, userId: string): Promise<AddressRow[]> {
  return reader
    .selectFrom('third_party_ids')
    .selectAll()
    .where('user_id', '=', userId)
    .orderBy('added_at')
    .orderBy('address')
    .execute();
}

/**
 * Adds an address to an account, or updates `validated_at` if the account has the address.
 * @returns false when the address belongs to another account
 */
export async function insertAddress(writer: Writer<ThirdPartyIdTables>, row: AddressRow): Promise<boolean> {
  await writer
    .insertInto('third_party_ids')
    .values(row)
    .onConflict((conflict) =>
      conflict
        .columns(['medium', 'address'])
        .doUpdateSet({ validated_at: row.validated_at })
        .where('third_party_ids.user_id', '=', row.user_id),
    )
    .execute();
  return (await findOwner(writer, row.medium, row.address)) === row.user_id;
}

export async function deleteAddress(
  writer: Writer<ThirdPartyIdTables>,
  userId: string,
  medium: string,
  address: string,
): Promise<void> {
  await writer
    .deleteFrom('third_party_ids')
    .where('medium', '=', medium)
    .where('address', '=', address)
    .where('user_id', '=', userId)
    .execute();
}
