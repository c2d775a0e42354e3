import type { Kysely } from 'kysely';
import { type DatabaseCheck, type Migration, rowsCheck, writerFor } from '../../kernel/database/index.ts';
import type { MediaTables } from '../tables.ts';
import { countUsage } from './usage.ts';

/** Adds the number and the bytes of the uploads of each user, with an index for each order of the list of users by them. */
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
    await countUsage(db as unknown as Kysely<MediaTables>);
    for (const column of ['files', 'bytes'])
      await run(`CREATE INDEX media_usage_by_${column} ON media_usage (${column}, user_id)`);
    // Counts the uploads of a period in the index alone.
    await run(
      'CREATE INDEX local_media_by_creation ON local_media (created_at, user_id, size) WHERE file_id IS NOT NULL AND preview_until IS NULL',
    );
  },
};

/** Adds up the uploads of long periods by user, in an index alone and without a sort. */
export const uploadsByUserMigration: Migration = {
  name: 'media/0009-uploads-by-user',
  async up({ run }) {
    await run(
      'CREATE INDEX local_media_by_user_and_creation ON local_media (user_id, created_at, size) WHERE file_id IS NOT NULL AND preview_until IS NULL',
    );
  },
};

/** The sums of each user are those of the user's uploads. */
export const mediaUsageCheck: DatabaseCheck = {
  ...rowsCheck({
    problem: 'users whose sums of uploaded media differ from their uploads',
    select: `select user_id as subject from (
      select user_id, sum(files) as files, sum(bytes) as bytes from (
        select user_id, count(*) as files, coalesce(sum(size), 0) as bytes from local_media
          where file_id is not null and preview_until is null group by user_id
        union all select user_id, -files, -bytes from media_usage
      ) counted group by user_id
    ) differences where files <> 0 or bytes <> 0`,
  }),
  mend: (writer) => countUsage(writerFor<MediaTables>(writer)),
};
