import type { Kysely } from 'kysely';
import { type DatabaseCheck, type Migration, rowsCheck, writerFor } from '../../kernel/database/index.ts';
import type { MediaTables } from '../tables.ts';
import { countUsage } from './usage.ts';

/** Adds the number and the bytes of the uploads of each user, with indexes for lists of users in the order of either number. */
export const mediaUsageMigration: Migration = {
  name: 'media/0008-usage',
  async up({ db, run, clustered }) {
    await clustered(
      db.schema
        .createTable('media_usage')
        .addColumn('user_id', 'text', (column) => column.primaryKey())
        .addColumn('files', 'bigint', (column) => column.notNull())
        .addColumn('bytes', 'bigint', (column) => column.notNull()),
    ).execute();
    await countUsage(db as unknown as Kysely<MediaTables>, false);
    for (const column of ['files', 'bytes'])
      await run(`CREATE INDEX media_usage_by_${column} ON media_usage (${column}, user_id)`);
    // The index has all columns that a count of the uploads of a period needs.
    await run(
      'CREATE INDEX local_media_by_creation ON local_media (created_at, user_id, size) WHERE file_id IS NOT NULL AND preview_until IS NULL',
    );
  },
};

/** Adds an index that suffices to add up the uploads of long periods by user, without a sort. */
export const uploadsByUserMigration: Migration = {
  name: 'media/0009-uploads-by-user',
  async up({ run }) {
    await run(
      'CREATE INDEX local_media_by_user_and_creation ON local_media (user_id, created_at, size) WHERE file_id IS NOT NULL AND preview_until IS NULL',
    );
  },
};

/**
 * Adds the times of the first and the last upload of each user: for a period that contains both times, the sums of all
 * uploads are the sums of the period.
 */
export const periodOfUploadsMigration: Migration = {
  name: 'media/0010-periods-of-uploads',
  async up({ db, run }) {
    for (const column of ['first_at', 'last_at'])
      await db.schema
        .alterTable('media_usage')
        .addColumn(column, 'bigint', (definition) => definition.notNull().defaultTo(0))
        .execute();
    await countUsage(db as unknown as Kysely<MediaTables>);
    // The sums of a period are read through `local_media_by_user_and_creation`.
    await run('DROP INDEX local_media_by_creation');
  },
};

const uploads = 'file_id is not null and preview_until is null';

/**
 * Checks the stored sums of each user against the number and bytes of the user's uploads, and the stored period against
 * the times of the uploads.
 */
export const mediaUsageCheck: DatabaseCheck = {
  ...rowsCheck({
    problem: 'users whose sums of uploaded media differ from their uploads',
    select: `select user_id as subject from (
      select user_id, sum(files) as files, sum(bytes) as bytes from (
        select user_id, count(*) as files, coalesce(sum(size), 0) as bytes from local_media
          where ${uploads} group by user_id
        union all select user_id, -files, -bytes from media_usage
      ) counted group by user_id
    ) differences where files <> 0 or bytes <> 0
    union select user_id from media_usage s where exists (
      select 1 from local_media m where m.user_id = s.user_id and ${uploads}
        and (m.created_at < s.first_at or m.created_at > s.last_at)
    )`,
  }),
  mend: (writer) => countUsage(writerFor<MediaTables>(writer)),
};
