import type { Migration } from '../kernel/database/index.ts';

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
];
