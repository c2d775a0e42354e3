import type { Reader } from '../../kernel/database/index.ts';
import type { MediaTables } from '../tables.ts';

/**
 * Returns the administrator who quarantined a file with this hash; `undefined` if no such file is quarantined. New files
 * with a quarantined hash are quarantined as well.
 */
export async function administratorWhoQuarantined(
  reader: Reader<MediaTables>,
  sha256: string,
): Promise<string | undefined> {
  const inTable = (table: 'local_media' | 'remote_media') =>
    reader
      .selectFrom(table)
      .select('quarantined_by')
      .where('sha256', '=', sha256)
      .where('quarantined_by', 'is not', null);
  const row = await inTable('local_media').unionAll(inTable('remote_media')).limit(1).executeTakeFirst();
  return row?.quarantined_by ?? undefined;
}
