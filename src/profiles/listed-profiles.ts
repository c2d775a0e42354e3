import type { Reader, Writer } from '../kernel/database/index.ts';
import { type JsonValue, localpartOf } from '../protocol/index.ts';
import type { ProfileTables } from './tables.ts';

type ListedProfile = ProfileTables['listed_profiles'];

/** Maximum characters of the JSON of an avatar in the table. Longer JSON is cut, because PostgreSQL limits indexed values. */
const maxAvatarLength = 200;

/**
 * Returns the row of a user in `listed_profiles`: the admin API sorts and searches users by these rows.
 * @param fields each field as JSON; an absent field is stored as an empty text
 */
export const listedProfile = (
  userId: string,
  fields: { readonly displayname?: string | null; readonly avatar_url?: string | null },
): ListedProfile => ({
  user_id: userId,
  ...listedName(userId, fields.displayname ?? ''),
  ...listedAvatar(fields.avatar_url ?? ''),
});

/**
 * Updates the row of a user after a change of the display name or avatar; other fields are not in the row.
 * @param json the new value of the field; `undefined` when it was removed
 */
export async function updateListedProfile(
  writer: Writer<ProfileTables>,
  userId: string,
  field: string,
  json: string | undefined,
): Promise<void> {
  if (field === 'displayname') await upsert(writer, userId, listedName(userId, json ?? ''));
  if (field === 'avatar_url') await upsert(writer, userId, listedAvatar(json ?? ''));
}

/** Adds the row of a new user, who has no name and no avatar. */
export async function beginListedProfile(writer: Writer<ProfileTables>, userId: string): Promise<void> {
  await upsert(writer, userId, listedProfile(userId, {}));
}

/** Reads the names and avatars of users as JSON, by user and field. */
export async function readListedFields(
  reader: Reader<ProfileTables>,
  userIds: readonly string[],
): Promise<ReadonlyMap<string, Readonly<Record<string, string>>>> {
  const rows = await reader
    .selectFrom('profile_fields')
    .selectAll()
    .where('user_id', 'in', userIds)
    .where('field', 'in', ['displayname', 'avatar_url'])
    .execute();
  const byUser = Map.groupBy(rows, (row) => row.user_id);
  return new Map(
    [...byUser].map(([userId, fields]) => [
      userId,
      Object.fromEntries(fields.map(({ field, value }) => [field, value])),
    ]),
  );
}

async function upsert(
  writer: Writer<ProfileTables>,
  userId: string,
  change: Partial<ListedProfile>,
): Promise<void> {
  await writer
    .insertInto('listed_profiles')
    .values({ ...listedProfile(userId, {}), ...change })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(change))
    .execute();
}

const listedName = (userId: string, json: string) => ({
  displayname: json,
  search_text: searchText(userId, json === '' ? '' : (JSON.parse(json) as JsonValue)),
});

const listedAvatar = (json: string) => ({ avatar_url: json.slice(0, maxAvatarLength).toWellFormed() });

/** Returns the localpart and the name, on a line each, in lower case. PostgreSQL stores no U+0000. */
const searchText = (userId: string, name: JsonValue) =>
  `${localpartOf(userId)}\n${typeof name === 'string' ? name : ''}`
    .replaceAll('\0', '')
    .toLowerCase()
    .toWellFormed();
