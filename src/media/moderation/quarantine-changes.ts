import type { Database, Writer } from '../../kernel/database/index.ts';
import type { MediaAddress } from '../media-address.ts';
import type { MediaTables } from '../tables.ts';

/** A file that was quarantined or released. */
export interface QuarantineChange extends MediaAddress {
  /** Orders the changes. */
  readonly id: number;
  readonly isQuarantined: boolean;
}

/** Maximum number of changes that one statement inserts or deletes. */
const rowsAtOnce = 1_000;

/**
 * Records that files were quarantined or released, in the transaction that quarantines or releases them. Earlier
 * changes of the same files are deleted, so that the table has at most one row for each file, the last change.
 */
export async function recordQuarantineChanges(
  writer: Writer<MediaTables>,
  addresses: readonly MediaAddress[],
  isQuarantined: boolean,
): Promise<void> {
  const rows = addresses.map(({ serverName, mediaId }) => ({
    server_name: serverName,
    media_id: mediaId,
    is_quarantined: isQuarantined ? 1 : 0,
  }));
  for (let start = 0; start < rows.length; start += rowsAtOnce) {
    const chunk = rows.slice(start, start + rowsAtOnce);
    // Inserted first: SQLite would otherwise use the id of the newest row again when that row is deleted.
    await writer.insertInto('quarantine_changes').values(chunk).execute();
    await deleteSuperseded(
      writer,
      chunk.map((row) => row.media_id),
    );
  }
}

/** Deletes each change of these files that has been followed by a later change of the same file. */
async function deleteSuperseded(writer: Writer<MediaTables>, mediaIds: readonly string[]): Promise<void> {
  await writer
    .deleteFrom('quarantine_changes')
    .where('media_id', 'in', mediaIds)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('quarantine_changes as later')
          .select('later.id')
          .whereRef('later.media_id', '=', 'quarantine_changes.media_id')
          .whereRef('later.server_name', '=', 'quarantine_changes.server_name')
          .whereRef('later.id', '>', 'quarantine_changes.id'),
      ),
    )
    .execute();
}

/**
 * Reads changes, the oldest first. The table has only the last change of each file.
 * @param after id of the last change that is known; 0 for none
 */
export async function readQuarantineChanges(
  database: Database,
  after: number,
  limit: number,
): Promise<QuarantineChange[]> {
  const rows = await database
    .reader<MediaTables>()
    .selectFrom('quarantine_changes')
    .selectAll()
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    id: row.id,
    serverName: row.server_name,
    mediaId: row.media_id,
    isQuarantined: row.is_quarantined === 1,
  }));
}
