import type { Kysely } from 'kysely';
import type { AccountTables } from '../../accounts/index.ts';
import { listedProfile, type ProfileTables, readListedFields } from '../../profiles/index.ts';

/** The tables that `addMissingProfiles` reads and writes. */
export type ListedTables = AccountTables & ProfileTables;

/** Number of users that are read and added at once. */
const usersAtOnce = 500;

/** Adds a row to the table `listed_profiles` for each user who has none. Lists of users are read from this table. */
export async function addMissingProfiles(db: Kysely<ListedTables>): Promise<void> {
  for (let after = ''; ; ) {
    const users = await db
      .selectFrom('users')
      .select('user_id')
      .where('user_id', '>', after)
      .orderBy('user_id')
      .limit(usersAtOnce)
      .execute();
    if (users.length === 0) return;
    const userIds = users.map((user) => user.user_id);
    const fields = await readListedFields(db as unknown as Kysely<ProfileTables>, userIds);
    await db
      .insertInto('listed_profiles')
      .values(userIds.map((userId) => listedProfile(userId, fields.get(userId) ?? {})))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    after = userIds.at(-1) ?? after;
  }
}
