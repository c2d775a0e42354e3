import type { Kysely } from 'kysely';
import { type DatabaseCheck, type Migration, rowsCheck, writerFor } from '../../kernel/database/index.ts';
import { addMissingProfiles, type ListedTables } from './listed-users.ts';

/** Returns a query for the users without a row in a table. */
const withoutRow = (table: string) =>
  `select user_id as subject from users where not exists (select 1 from ${table} t where t.user_id = users.user_id)`;

/** Returns the condition that the user of a row does not exist. */
const withoutUser = (table: string) =>
  `not exists (select 1 from users u where u.user_id = ${table}.user_id)`;

/**
 * Run after the migrations of the slices `accounts`, `devices` and `profiles`, whose tables they read and write.
 */
export const userListMigrations: readonly Migration[] = [
  {
    name: 'admin/0006-users-without-activity',
    async up({ run }) {
      await run(
        `INSERT INTO user_activity (user_id, last_seen_at) SELECT user_id, 0 FROM users
         WHERE NOT EXISTS (SELECT 1 FROM user_activity a WHERE a.user_id = users.user_id)`,
      );
    },
  },
  {
    name: 'admin/0007-listed-users',
    async up({ db, run }) {
      await run(`DELETE FROM user_activity WHERE ${withoutUser('user_activity')}`);
      await addMissingProfiles(db as unknown as Kysely<ListedTables>);
    },
  },
];

/** Checks of the tables that lists of users are read from. Each table must have one row for each user. */
export const userListChecks: readonly DatabaseCheck[] = [
  ...['user_activity', 'listed_profiles'].map((table) =>
    rowsCheck({
      problem: `rows of ${table} for users that do not exist`,
      select: `select user_id as subject from ${table} where ${withoutUser(table)}`,
      mend: `delete from ${table} where ${withoutUser(table)}`,
    }),
  ),
  rowsCheck({
    problem: 'users without a time of their last activity: lists sorted by this time do not contain them',
    select: withoutRow('user_activity'),
    mend: `insert into user_activity (user_id, last_seen_at)
      select subject, 0 from (${withoutRow('user_activity')}) missing`,
  }),
  {
    ...rowsCheck({
      problem: 'users that searches and lists sorted by name do not contain',
      select: withoutRow('listed_profiles'),
    }),
    mend: (writer) => addMissingProfiles(writerFor<ListedTables>(writer)),
  },
];
