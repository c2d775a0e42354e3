import { type Kysely, sql } from 'kysely';
import type { Writer } from '../../kernel/database/index.ts';
import type { MediaTables } from '../tables.ts';

/** A deleted row of `local_media`. */
export interface DeletedMediaRow {
  readonly user_id: string;
  /** Null for media ids without an upload. */
  readonly file_id: string | null;
  /** Bytes. */
  readonly size: number | null;
  /** When an image of a URL preview is deleted; null for uploads. Only uploads count for a user. */
  readonly preview_until: number | null;
}

/**
 * Adds an upload to the sums of its user, in the transaction that stores it.
 * @param at creation time of its media id, in milliseconds since the epoch
 * @param size bytes
 */
export async function addToUsage(
  writer: Writer<MediaTables>,
  userId: string,
  { at, size }: { readonly at: number; readonly size: number },
): Promise<void> {
  /** Returns the smaller (`<`) or the larger (`>`) of the stored and the added value of a column. */
  const smallerOrLarger = (column: string, comparison: '<' | '>') => {
    const [stored, added] = [sql.ref(`media_usage.${column}`), sql.ref(`excluded.${column}`)];
    return sql<number>`case when ${added} ${sql.raw(comparison)} ${stored} then ${added} else ${stored} end`;
  };
  await writer
    .insertInto('media_usage')
    .values({ user_id: userId, files: 1, bytes: size, first_at: at, last_at: at })
    .onConflict((conflict) =>
      conflict.column('user_id').doUpdateSet({
        files: sql<number>`media_usage.files + excluded.files`,
        bytes: sql<number>`media_usage.bytes + excluded.bytes`,
        first_at: smallerOrLarger('first_at', '<'),
        last_at: smallerOrLarger('last_at', '>'),
      }),
    )
    .execute();
}

/** Subtracts uploads from the sums of their users, in the transaction that deletes them. */
export async function subtractFromUsage(
  writer: Writer<MediaTables>,
  deleted: readonly DeletedMediaRow[],
): Promise<void> {
  const uploads = deleted.filter((row) => row.file_id !== null && row.preview_until === null);
  const byUser = Map.groupBy(uploads, (row) => row.user_id);
  // All transactions change the sums in the same order of users, so that no two transactions wait for each other.
  for (const [userId, files] of [...byUser].sort(([first], [second]) => (first < second ? -1 : 1))) {
    const bytes = files.reduce((sum, { size }) => sum + Number(size ?? 0), 0);
    await writer
      .updateTable('media_usage')
      .set({ files: sql<number>`files - ${files.length}`, bytes: sql<number>`bytes - ${bytes}` })
      .where('user_id', '=', userId)
      .execute();
  }
  if (byUser.size === 0) return;
  await writer
    .deleteFrom('media_usage')
    .where('user_id', 'in', [...byUser.keys()])
    .where('files', '<=', 0)
    .execute();
}

/** Number of users whose uploads are counted at once. */
const usersAtOnce = 500;

/**
 * Counts the uploads of all users again.
 * @param hasTimes whether the table already has the columns `first_at` and `last_at`, which a later migration adds
 */
export async function countUsage(db: Kysely<MediaTables>, hasTimes = true): Promise<void> {
  await db.deleteFrom('media_usage').execute();
  for (let after = ''; ; ) {
    const users = db
      .selectFrom('local_media')
      .select('user_id')
      .distinct()
      .where('user_id', '>', after)
      .orderBy('user_id')
      .limit(usersAtOnce);
    const found = await users.execute();
    const last = found.at(-1)?.user_id;
    if (last === undefined) return;
    await db
      .insertInto('media_usage')
      .columns(['user_id', 'files', 'bytes', ...(hasTimes ? (['first_at', 'last_at'] as const) : [])])
      .expression(
        db
          .selectFrom('local_media')
          .select([
            'user_id',
            sql<number>`count(*)`.as('files'),
            sql<number>`cast(coalesce(sum(size), 0) as bigint)`.as('bytes'),
            ...(hasTimes
              ? [sql<number>`min(created_at)`.as('first_at'), sql<number>`max(created_at)`.as('last_at')]
              : []),
          ])
          .where('user_id', '>', after)
          .where('user_id', '<=', last)
          .where('file_id', 'is not', null)
          .where('preview_until', 'is', null)
          .groupBy('user_id'),
      )
      .execute();
    after = last;
  }
}
