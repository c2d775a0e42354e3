import { sql } from 'kysely';
import type { Migration } from '../kernel/database/index.ts';
import { boundedName } from './fields.ts';

export const profileMigrations: readonly Migration[] = [
  {
    name: 'profiles/0001-fields',
    async up({ db, clustered }) {
      await clustered(
        db.schema
          .createTable('profile_fields')
          .addColumn('user_id', 'text', (column) => column.notNull())
          .addColumn('field', 'text', (column) => column.notNull())
          .addColumn('value', 'text', (column) => column.notNull())
          .addPrimaryKeyConstraint('profile_fields_key', ['user_id', 'field']),
      ).execute();
    },
  },
  {
    // The indexes list users in the order of their names or avatars. PostgreSQL limits the length of values in an index.
    name: 'profiles/0002-users-by-value',
    async up({ run }) {
      for (const field of ['displayname', 'avatar_url']) {
        await run(
          `CREATE INDEX profile_fields_by_${field} ON profile_fields (substr(value, 1, 200), user_id) WHERE field = '${field}'`,
        );
      }
    },
  },
  {
    // Names of new users were not always checked, and PostgreSQL fails to index long ones. The next migration makes
    // the index, in a transaction of its own, because an index made in this transaction would contain the old long
    // names too.
    name: 'profiles/0003-bounded-names',
    async up({ db }) {
      const { rows } = await sql<{ user_id: string; value: string }>`
        select user_id, value from profile_fields where field = 'displayname' and length(value) > 258`.execute(
        db,
      );
      for (const { user_id: userId, value } of rows) {
        const bounded = JSON.stringify(boundedName(String(JSON.parse(value))));
        await sql`update profile_fields set value = ${bounded} where user_id = ${userId} and field = 'displayname'`.execute(
          db,
        );
      }
    },
  },
  {
    // The index has whole names (at most 256 characters), so that a search of names reads the index and not the table.
    name: 'profiles/0003-display-names',
    async up({ db, run }) {
      await db.schema.dropIndex('profile_fields_by_displayname').execute();
      await run(
        `CREATE INDEX profile_fields_by_displayname ON profile_fields (value, user_id) WHERE field = 'displayname'`,
      );
    },
  },
  {
    // The table has the names, pictures and search texts of the list of users in the admin API. The migrations of the
    // admin API fill it, because they can read the table of accounts.
    name: 'profiles/0004-listed-profiles',
    async up({ db }) {
      await db.schema
        .createTable('listed_profiles')
        .addColumn('user_id', 'text', (column) => column.primaryKey())
        .addColumn('displayname', 'text', (column) => column.notNull())
        .addColumn('avatar_url', 'text', (column) => column.notNull())
        .addColumn('search_text', 'text', (column) => column.notNull())
        .execute();
      for (const field of ['displayname', 'avatar_url']) {
        await db.schema.dropIndex(`profile_fields_by_${field}`).execute();
        await db.schema
          .createIndex(`listed_profiles_by_${field}`)
          .on('listed_profiles')
          .columns([field, 'user_id'])
          .execute();
      }
    },
  },
];
