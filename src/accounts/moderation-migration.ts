import type { Migration } from '../kernel/database/index.ts';

export const moderationMigration: Migration = {
  name: 'accounts/0003-moderation',
  async up({ db, run }) {
    await db.schema
      .alterTable('users')
      .addColumn('is_shadow_banned', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    // The administrator who made the token, to act as its user.
    await db.schema.alterTable('access_tokens').addColumn('issued_by', 'text').execute();
    await run(
      'CREATE INDEX access_tokens_issued_by ON access_tokens (issued_by) WHERE issued_by IS NOT NULL',
    );
  },
};
