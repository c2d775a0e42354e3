import type { Reader } from '../../kernel/database/index.ts';
import type { MediaAddress } from '../media-address.ts';
import type { MediaTables } from '../tables.ts';

/**
 * The stored properties of a file. Times are milliseconds since the epoch, sizes are bytes. The properties of the file
 * are null for a media id that waits for its upload.
 */
export interface MediaDetails {
  /** The server name in the `mxc://` URI. */
  readonly origin: string;
  /** Absent for copies of remote media. */
  readonly userId: string | undefined;
  readonly mediaId: string;
  readonly contentType: string | null;
  readonly size: number | null;
  readonly fileName: string | null;
  /** When the media id was made; for a copy, when it was fetched. */
  readonly createdAt: number;
  readonly fileId: string | null;
  readonly lastAccessAt: number | null;
  readonly quarantinedBy: string | null;
  readonly isAuthenticated: boolean;
  /** Absent for copies of remote media. */
  readonly isProtected: boolean | undefined;
  readonly sha256: string | null;
}

/** Returns the stored properties of an upload, or of a media id that waits for its upload; `undefined` for an unknown media id. */
export async function localDetails(
  reader: Reader<MediaTables>,
  { serverName, mediaId }: MediaAddress,
): Promise<MediaDetails | undefined> {
  const row = await reader
    .selectFrom('local_media')
    .selectAll()
    .where('media_id', '=', mediaId)
    .executeTakeFirst();
  return (
    row && {
      origin: serverName,
      userId: row.user_id,
      mediaId,
      createdAt: row.created_at,
      isProtected: row.protected === 1,
      ...sharedDetails(row),
    }
  );
}

/** Returns the stored properties of a copy of remote media; `undefined` when there is no copy. */
export async function remoteDetails(
  reader: Reader<MediaTables>,
  { serverName, mediaId }: MediaAddress,
): Promise<MediaDetails | undefined> {
  const row = await reader
    .selectFrom('remote_media')
    .selectAll()
    .where('server_name', '=', serverName)
    .where('media_id', '=', mediaId)
    .executeTakeFirst();
  return (
    row && {
      origin: serverName,
      userId: undefined,
      mediaId,
      createdAt: row.fetched_at,
      isProtected: undefined,
      ...sharedDetails(row),
    }
  );
}

interface SharedColumns {
  readonly content_type: string | null;
  readonly size: number | null;
  readonly file_name: string | null;
  readonly file_id: string | null;
  readonly last_access_at: number | null;
  readonly quarantined_by: string | null;
  readonly authenticated: number;
  readonly sha256: string | null;
}

const sharedDetails = (row: SharedColumns) => ({
  contentType: row.content_type,
  size: row.size,
  fileName: row.file_name,
  fileId: row.file_id,
  lastAccessAt: row.last_access_at,
  quarantinedBy: row.quarantined_by,
  isAuthenticated: row.authenticated === 1,
  sha256: row.sha256,
});
