import type { Reader, Writer } from '../kernel/database/index.ts';
import type { StoredFile } from './disk/media-store.ts';
import type { MediaAddress } from './media-address.ts';
import type { MediaArea, MediaDescription, MediaFile } from './media-file.ts';
import type { MediaTables as Tables } from './tables.ts';
import { addToUsage } from './usage/usage.ts';

/** A media id that a local user has made, with its file once it is uploaded. */
export interface LocalMediaEntry {
  readonly userId: string;
  /** When the media id expires without an upload, in milliseconds since the epoch. */
  readonly expiresAt: number | undefined;
  readonly file: MediaFile | undefined;
}

const localColumns = [
  'user_id',
  'expires_at',
  'file_id',
  'content_type',
  'file_name',
  'size',
  'sha256',
  'authenticated',
  'quarantined_by',
] as const;

/** Returns media of this server; `file` is `undefined` while its content has not been uploaded. */
export async function readLocal(
  reader: Reader<Tables>,
  mediaId: string,
): Promise<LocalMediaEntry | undefined> {
  const row = await reader
    .selectFrom('local_media')
    .select(localColumns)
    .where('media_id', '=', mediaId)
    .executeTakeFirst();
  return (
    row && {
      userId: row.user_id,
      expiresAt: row.expires_at ?? undefined,
      file: row.file_id === null ? undefined : toFile('local', { ...row, file_id: row.file_id }),
    }
  );
}

/** Returns the stored copy of media of another server. */
export async function readRemote(
  reader: Reader<Tables>,
  { serverName, mediaId }: MediaAddress,
): Promise<MediaFile | undefined> {
  const row = await reader
    .selectFrom('remote_media')
    .select(['file_id', 'content_type', 'file_name', 'size', 'sha256', 'authenticated', 'quarantined_by'])
    .where('server_name', '=', serverName)
    .where('media_id', '=', mediaId)
    .executeTakeFirst();
  return row && toFile('remote', row);
}

interface FileRow {
  readonly file_id: string;
  readonly content_type: string | null;
  readonly file_name: string | null;
  readonly size: number | null;
  readonly sha256: string | null;
  readonly authenticated: number;
  readonly quarantined_by: string | null;
}

const toFile = (area: MediaArea, row: FileRow): MediaFile => ({
  area,
  fileId: row.file_id,
  contentType: row.content_type ?? 'application/octet-stream',
  fileName: row.file_name ?? undefined,
  size: row.size ?? 0,
  sha256: row.sha256 ?? '',
  isAuthenticated: row.authenticated === 1,
  isQuarantined: row.quarantined_by !== null,
});

/** Reports whether a row refers to the file. */
export async function isFileStored(
  reader: Reader<Tables>,
  area: MediaArea,
  fileId: string,
): Promise<boolean> {
  const table = area === 'local' ? 'local_media' : 'remote_media';
  const row = await reader
    .selectFrom(table)
    .select('file_id')
    .where('file_id', '=', fileId)
    .executeTakeFirst();
  return row !== undefined;
}

/** A file on the disk whose row is about to be written: an upload, or a copy of remote media. */
export interface NewMediaFile extends StoredFile, MediaDescription {
  readonly isAuthenticated: boolean;
  /** The administrator who has quarantined this content. */
  readonly quarantinedBy: string | undefined;
}

const fileValues = (file: NewMediaFile) => ({
  file_id: file.fileId,
  content_type: file.contentType,
  file_name: file.fileName ?? null,
  size: file.size,
  sha256: file.sha256,
  authenticated: file.isAuthenticated ? 1 : 0,
  quarantined_by: file.quarantinedBy ?? null,
});

/** Inserts an upload whose file is on the disk. */
export async function insertUploaded(
  writer: Writer<Tables>,
  { mediaId, userId, at }: { mediaId: string; userId: string; at: number },
  file: NewMediaFile,
): Promise<void> {
  await writer
    .insertInto('local_media')
    .values({
      media_id: mediaId,
      user_id: userId,
      created_at: at,
      expires_at: null,
      uploaded_at: at,
      ...fileValues(file),
    })
    .execute();
  await addToUsage(writer, userId, { at, size: file.size });
}

/** Stores an image of a URL preview, which belongs to no user. */
export async function insertPreviewImage(
  writer: Writer<Tables>,
  { mediaId, at, until }: { mediaId: string; at: number; until: number },
  file: NewMediaFile,
): Promise<void> {
  await writer
    .insertInto('local_media')
    .values({
      media_id: mediaId,
      user_id: '',
      created_at: at,
      expires_at: null,
      uploaded_at: at,
      preview_until: until,
      ...fileValues(file),
    })
    .execute();
}

/** Returns the bytes of all stored images of URL previews. */
export async function sizeOfPreviewImages(reader: Reader<Tables>): Promise<number> {
  const { total } = await reader
    .selectFrom('local_media')
    .select(({ fn }) => fn.sum<number | null>('size').as('total'))
    .where('preview_until', 'is not', null)
    .executeTakeFirstOrThrow();
  return Number(total ?? 0);
}

/** Returns the oldest images of URL previews, with their sizes in bytes, except quarantined images. */
export async function readOldestPreviewImages(
  reader: Reader<Tables>,
  limit: number,
): Promise<{ readonly mediaId: string; readonly size: number }[]> {
  const rows = await reader
    .selectFrom('local_media')
    .select(['media_id', 'size'])
    .where('preview_until', 'is not', null)
    .where('quarantined_by', 'is', null)
    .orderBy('preview_until')
    .limit(limit)
    .execute();
  return rows.map((row) => ({ mediaId: row.media_id, size: row.size ?? 0 }));
}

/** Sets the content type of a file with a media id of this server. */
export async function setContentType(
  writer: Writer<Tables>,
  mediaId: string,
  contentType: string,
): Promise<void> {
  await writer
    .updateTable('local_media')
    .set({ content_type: contentType })
    .where('media_id', '=', mediaId)
    .execute();
}

/** Returns ids of expired images of URL previews, except quarantined images. */
export async function readExpiredPreviewImages(
  reader: Reader<Tables>,
  now: number,
  limit: number,
): Promise<string[]> {
  const rows = await reader
    .selectFrom('local_media')
    .select('media_id')
    .where('preview_until', '<=', now)
    .where('quarantined_by', 'is', null)
    .limit(limit)
    .execute();
  return rows.map((row) => row.media_id);
}

/** Sets the file of a media id. @returns whether the upload was pending */
export async function completePending(
  writer: Writer<Tables>,
  { mediaId, at }: { mediaId: string; at: number },
  file: NewMediaFile,
): Promise<boolean> {
  const completed = await writer
    .updateTable('local_media')
    .set({ uploaded_at: at, expires_at: null, ...fileValues(file) })
    .where('media_id', '=', mediaId)
    .where('file_id', 'is', null)
    .returning(['user_id', 'created_at'])
    .executeTakeFirst();
  if (completed === undefined) return false;
  await addToUsage(writer, completed.user_id, { at: completed.created_at, size: file.size });
  return true;
}

/** Inserts a media id without content, for a later upload. */
export async function insertPending(
  writer: Writer<Tables>,
  row: { mediaId: string; userId: string; at: number; expiresAt: number },
): Promise<void> {
  await writer
    .insertInto('local_media')
    .values({
      media_id: row.mediaId,
      user_id: row.userId,
      created_at: row.at,
      expires_at: row.expiresAt,
      authenticated: 0,
    })
    .execute();
}

/** Returns the expiry times of a user's pending uploads, earliest first. */
export async function readPending(reader: Reader<Tables>, userId: string): Promise<number[]> {
  const rows = await reader
    .selectFrom('local_media')
    .select('expires_at')
    .where('user_id', '=', userId)
    .where('uploaded_at', 'is', null)
    .orderBy('expires_at')
    .execute();
  return rows.map((row) => row.expires_at ?? 0);
}

/** Deletes the media ids of a user that have expired without an upload. @param now milliseconds since the epoch */
export async function deleteExpired(writer: Writer<Tables>, userId: string, now: number): Promise<void> {
  await writer
    .deleteFrom('local_media')
    .where('user_id', '=', userId)
    .where('uploaded_at', 'is', null)
    .where('expires_at', '<=', now)
    .execute();
}

/** Returns how many bytes a user has uploaded since a time. */
export async function sumUploaded(reader: Reader<Tables>, userId: string, since: number): Promise<number> {
  const { total } = await reader
    .selectFrom('local_media')
    .select(({ fn }) => fn.sum<number | string | null>('size').as('total'))
    .where('user_id', '=', userId)
    .where('uploaded_at', '>', since)
    .executeTakeFirstOrThrow();
  return Number(total ?? 0);
}

/** Inserts the row of a copy of remote media unless there is a row already. @returns whether the row was inserted */
export async function insertRemote(
  writer: Writer<Tables>,
  { serverName, mediaId }: MediaAddress,
  at: number,
  file: NewMediaFile,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await writer
    .insertInto('remote_media')
    .values({ server_name: serverName, media_id: mediaId, fetched_at: at, ...fileValues(file) })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return (numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Deletes the row of a copy of remote media, unless another file has replaced `fileId`. */
export async function deleteRemote(
  writer: Writer<Tables>,
  { serverName, mediaId }: MediaAddress,
  fileId: string,
): Promise<void> {
  await writer
    .deleteFrom('remote_media')
    .where('server_name', '=', serverName)
    .where('media_id', '=', mediaId)
    .where('file_id', '=', fileId)
    .execute();
}
