import type { Reader } from '../../kernel/database/index.ts';
import type { MediaTables } from '../tables.ts';

/** Returns the administrator who has quarantined a file of this content, so that new files of it are quarantined, too. */
export async function quarantinedHash(
  reader: Reader<MediaTables>,
  sha256: string,
): Promise<string | undefined> {
  for (const table of ['local_media', 'remote_media'] as const) {
    const row = await reader
      .selectFrom(table)
      .select('quarantined_by')
      .where('sha256', '=', sha256)
      .where('quarantined_by', 'is not', null)
      .executeTakeFirst();
    if (row?.quarantined_by) return row.quarantined_by;
  }
  return undefined;
}
