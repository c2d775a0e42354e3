import type { Migration } from '../kernel/database/index.ts';
import { mediaModerationMigration } from './moderation/migration.ts';
import { mediaUsageMigration, periodOfUploadsMigration, uploadsByUserMigration } from './usage/migration.ts';

export const mediaMigrations: readonly Migration[] = [
  {
    name: 'media/0001-media',
    async up({ db }) {
      await db.schema
        .createTable('local_media')
        .addColumn('media_id', 'text', (column) => column.primaryKey())
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('created_at', 'bigint', (column) => column.notNull())
        .addColumn('expires_at', 'bigint')
        .addColumn('file_id', 'text', (column) => column.unique())
        .addColumn('uploaded_at', 'bigint')
        .addColumn('content_type', 'text')
        .addColumn('file_name', 'text')
        .addColumn('size', 'bigint')
        .addColumn('sha256', 'text')
        .addColumn('authenticated', 'integer', (column) => column.notNull())
        .execute();
      await db.schema
        .createIndex('local_media_by_user')
        .on('local_media')
        .columns(['user_id', 'uploaded_at'])
        .execute();
      await db.schema
        .createTable('remote_media')
        .addColumn('server_name', 'text', (column) => column.notNull())
        .addColumn('media_id', 'text', (column) => column.notNull())
        .addColumn('file_id', 'text', (column) => column.notNull().unique())
        .addColumn('fetched_at', 'bigint', (column) => column.notNull())
        .addColumn('content_type', 'text', (column) => column.notNull())
        .addColumn('file_name', 'text')
        .addColumn('size', 'bigint', (column) => column.notNull())
        .addColumn('sha256', 'text', (column) => column.notNull())
        .addColumn('authenticated', 'integer', (column) => column.notNull())
        .addPrimaryKeyConstraint('remote_media_key', ['server_name', 'media_id'])
        .execute();
    },
  },
  mediaModerationMigration,
  {
    name: 'media/0003-preview-images',
    async up({ db, run }) {
      await db.schema.alterTable('local_media').addColumn('preview_until', 'bigint').execute();
      await run(
        'CREATE INDEX local_media_by_preview_end ON local_media (preview_until) WHERE preview_until IS NOT NULL',
      );
    },
  },
  {
    name: 'media/0004-last-use',
    async up({ run }) {
      await run(
        'CREATE INDEX local_media_by_last_use ON local_media ((COALESCE(last_access_at, uploaded_at))) WHERE quarantined_by IS NULL AND protected = 0 AND preview_until IS NULL',
      );
      await run(
        'CREATE INDEX remote_media_by_last_use ON remote_media ((COALESCE(last_access_at, fetched_at))) WHERE quarantined_by IS NULL',
      );
    },
  },
  {
    name: 'media/0005-quarantine-changes',
    async up({ db }) {
      await db.schema
        .createTable('quarantine_changes')
        .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
        .addColumn('server_name', 'text', (column) => column.notNull())
        .addColumn('media_id', 'text', (column) => column.notNull())
        .addColumn('is_quarantined', 'integer', (column) => column.notNull())
        .execute();
    },
  },
  {
    name: 'media/0006-last-quarantine-change',
    async up({ run }) {
      await run('CREATE INDEX quarantine_changes_by_file ON quarantine_changes (media_id, server_name)');
      await run(
        'DELETE FROM quarantine_changes WHERE EXISTS (SELECT 1 FROM quarantine_changes later WHERE later.media_id = quarantine_changes.media_id AND later.server_name = quarantine_changes.server_name AND later.id > quarantine_changes.id)',
      );
    },
  },
  {
    name: 'media/0007-quarantined-hashes',
    async up({ run }) {
      // The index finds a quarantined hash at once, however many files have the same content.
      for (const table of ['local_media', 'remote_media'])
        await run(
          `CREATE INDEX ${table}_by_quarantined_hash ON ${table} (sha256) WHERE quarantined_by IS NOT NULL`,
        );
    },
  },
  mediaUsageMigration,
  uploadsByUserMigration,
  periodOfUploadsMigration,
];
