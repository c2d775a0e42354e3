/** Media: how much users have uploaded, single files, quarantine and deletion. */
import { nextOf, type Page, type PageRequest } from './lists.ts';
import { type Api, path } from './request.ts';

export interface MediaUse {
  readonly user_id: string;
  readonly displayname: string | null;
  readonly media_count: number;
  /** Bytes of all files. */
  readonly media_length: number;
}

export interface UploadedFile {
  readonly media_id: string;
  readonly media_type: string | null;
  /** Bytes. */
  readonly media_length: number | null;
  readonly upload_name: string | null;
  readonly created_ts: number;
  readonly last_access_ts: number | null;
  readonly quarantined_by: string | null;
  readonly safe_from_quarantine: boolean;
}

/** @param search a part of a user id or display name */
export async function listMediaUse(
  api: Api,
  search: string,
  page: PageRequest,
  signal: AbortSignal,
): Promise<Page<MediaUse>> {
  const query = { order_by: 'media_length', dir: 'b', ...page, search_term: search };
  const answer = await api.admin<{ users: MediaUse[]; total: number; next_token?: number }>(
    'GET',
    '/v1/statistics/users/media',
    { query, signal },
  );
  return { rows: answer.users, total: answer.total, next: nextOf(answer.next_token) };
}

export async function listFiles(
  api: Api,
  userId: string,
  page: PageRequest,
  signal: AbortSignal,
): Promise<Page<UploadedFile>> {
  const answer = await api.admin<{ media: UploadedFile[]; total: number; next_token?: number }>(
    'GET',
    path`/v1/users/${userId}/media`,
    { query: { ...page }, signal },
  );
  return { rows: answer.media, total: answer.total, next: nextOf(answer.next_token) };
}

/** Quarantines a file, or releases it. @param isQuarantined whether users cannot download the file afterwards */
export const setQuarantined = (
  api: Api,
  serverName: string,
  mediaId: string,
  isQuarantined: boolean,
): Promise<unknown> =>
  api.admin('POST', `/v1/media/${isQuarantined ? '' : 'un'}quarantine${path`/${serverName}/${mediaId}`}`);

/** Quarantines the uploads of a user, except protected ones. @returns the number of quarantined files */
export async function quarantineAllOf(api: Api, userId: string): Promise<number> {
  const target = path`/v1/user/${userId}/media/quarantine`;
  return (await api.admin<{ num_quarantined: number }>('POST', target)).num_quarantined;
}

export const deleteFile = (api: Api, serverName: string, mediaId: string): Promise<unknown> =>
  api.admin('DELETE', path`/v1/media/${serverName}/${mediaId}`);

/** Downloads a file. @throws ApiError also for files in quarantine */
export const download = (api: Api, serverName: string, mediaId: string, signal: AbortSignal): Promise<Blob> =>
  api.file(path`/v1/media/download/${serverName}/${mediaId}`, { signal });

/**
 * Deletes cached files of other servers. Only files that were last used before a time are deleted.
 * @param before milliseconds since the epoch
 * @returns the number of deleted files
 */
export async function purgeRemoteMedia(api: Api, before: number): Promise<number> {
  const query = { before_ts: before };
  return (await api.admin<{ deleted: number }>('POST', '/v1/purge_media_cache', { query })).deleted;
}
