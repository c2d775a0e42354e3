import { FixedQuery, type Reader, type Writer } from '../kernel/database/index.ts';
import type { JsonObject, JsonValue } from '../protocol/index.ts';
import { listedProfile, updateListedProfile } from './listed-profiles.ts';
import type { ProfileTables } from './tables.ts';

const profileQuery = new FixedQuery((reader: Reader<ProfileTables>, userId: string) =>
  reader
    .selectFrom('profile_fields')
    .select(['field', 'value'])
    .where('user_id', '=', userId)
    .orderBy('field'),
);

/** Reads all fields of a user's profile. */
export async function readProfile(reader: Reader<ProfileTables>, userId: string): Promise<JsonObject> {
  const rows = await profileQuery.execute(reader, userId);
  return Object.fromEntries(rows.map((row) => [row.field, JSON.parse(row.value) as JsonValue]));
}

/** Inserts or replaces a field of a profile. */
export async function writeField(
  writer: Writer<ProfileTables>,
  userId: string,
  field: string,
  value: JsonValue,
): Promise<void> {
  const text = JSON.stringify(value);
  await writer
    .insertInto('profile_fields')
    .values({ user_id: userId, field, value: text })
    .onConflict((conflict) => conflict.columns(['user_id', 'field']).doUpdateSet({ value: text }))
    .execute();
  await updateListedProfile(writer, userId, field, text);
}

/** @returns whether the field existed */
export async function deleteField(
  writer: Writer<ProfileTables>,
  userId: string,
  field: string,
): Promise<boolean> {
  const result = await writer
    .deleteFrom('profile_fields')
    .where('user_id', '=', userId)
    .where('field', '=', field)
    .executeTakeFirst();
  if (result.numDeletedRows === 0n) return false;
  await updateListedProfile(writer, userId, field, undefined);
  return true;
}

/** Deletes all fields of a profile. @returns their names */
export async function deleteProfile(writer: Writer<ProfileTables>, userId: string): Promise<string[]> {
  const rows = await writer
    .deleteFrom('profile_fields')
    .where('user_id', '=', userId)
    .returning('field')
    .execute();
  await writer
    .updateTable('listed_profiles')
    .set(listedProfile(userId, {}))
    .where('user_id', '=', userId)
    .execute();
  return rows.map((row) => row.field);
}
