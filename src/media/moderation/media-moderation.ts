import { type DeleteQueryBuilder, type DeleteResult, sql } from 'kysely';
import type { Database, Writer } from '../../kernel/database/index.ts';
import type { MediaStore } from '../disk/media-store.ts';
import type { MediaAddress } from '../media-address.ts';
import type { ProviderStorage } from '../providers/provider-storage.ts';
import type { MediaTables } from '../tables.ts';
import { subtractFromUsage } from '../usage/usage.ts';
import type { MediaAccess } from './media-access.ts';
import { localDetails, type MediaDetails, remoteDetails } from './media-details.ts';
import {
  type QuarantineChange,
  readQuarantineChanges,
  recordQuarantineChanges,
} from './quarantine-changes.ts';

export interface MediaModerationDeps {
  readonly database: Database;
  readonly disk: MediaStore;
  readonly access: MediaAccess;
  readonly providerStorage: ProviderStorage;
  readonly serverName: string;
}

/** Selects media to delete by its last use and its size. */
export interface DeletionCriteria {
  /** Milliseconds since the epoch: media that was used at this time or later is kept. */
  readonly before: number;
  /** Bytes: media of this size and smaller media is kept. */
  readonly largerThan: number;
}

/** Maximum number of rows that are read and deleted at once. */
const rowsAtOnce = 200;

type Deletion = DeleteQueryBuilder<MediaTables, 'local_media', DeleteResult>;
type Restriction = (deletion: Deletion) => Deletion;

/**
 * Leaves out quarantined and protected files, even files that an administrator has quarantined or protected after they
 * were chosen for deletion.
 */
const exceptKept: Restriction = (deletion) =>
  deletion.where('quarantined_by', 'is', null).where('protected', '=', 0);

/** Quarantines, protects and deletes media on behalf of administrators. */
export class MediaModeration {
  readonly #deps: MediaModerationDeps;

  constructor(deps: MediaModerationDeps) {
    this.#deps = deps;
  }

  /** Resolves when the times at which media was last read are on disk. */
  updateAccessTimes(): Promise<void> {
    return this.#deps.access.flush();
  }

  /** Returns the stored properties of a file; `undefined` for unknown media and for remote media without a copy. */
  async details({ serverName, mediaId }: MediaAddress): Promise<MediaDetails | undefined> {
    await this.#deps.access.flush();
    const reader = this.#deps.database.reader<MediaTables>();
    return serverName === this.#deps.serverName
      ? localDetails(reader, { serverName, mediaId })
      : remoteDetails(reader, { serverName, mediaId });
  }

  /**
   * Quarantines files and all files of the same content, except protected files. Quarantined files cannot be read.
   * @param administrator user id, which is stored with the files
   * @returns the number of the files in `addresses` that are quarantined
   */
  async quarantine(addresses: readonly MediaAddress[], administrator: string): Promise<number> {
    let count = 0;
    for (const address of addresses) {
      const isDone = await this.#deps.database.transaction<MediaTables, boolean>(async (writer) => {
        const hash = await this.#quarantineFile(writer, address, administrator);
        if (hash === undefined) return false;
        const filesWithHash =
          hash === null ? [] : await quarantineHash(writer, hash, administrator, this.#deps.serverName);
        await recordQuarantineChanges(writer, [address, ...filesWithHash], true);
        return true;
      });
      if (isDone) count++;
    }
    return count;
  }

  /** Quarantines all uploads of a local user, except protected uploads. @returns the number of quarantined uploads */
  async quarantineOfUser(userId: string, administrator: string): Promise<number> {
    const { serverName, database } = this.#deps;
    let count = 0;
    for (let after = ''; ; ) {
      const rows = await database
        .reader<MediaTables>()
        .selectFrom('local_media')
        .select('media_id')
        .where('user_id', '=', userId)
        .where('file_id', 'is not', null)
        .where('media_id', '>', after)
        .orderBy('media_id')
        .limit(rowsAtOnce)
        .execute();
      count += await this.quarantine(
        rows.map((row) => ({ serverName, mediaId: row.media_id })),
        administrator,
      );
      if (rows.length < rowsAtOnce) return count;
      after = rows.at(-1)?.media_id ?? after;
    }
  }

  /** Ends the quarantine of a file. Other files of the same content stay quarantined. */
  async release({ serverName, mediaId }: MediaAddress): Promise<void> {
    await this.#deps.database.transaction<MediaTables, void>(async (writer) => {
      const isLocal = serverName === this.#deps.serverName;
      const released = isLocal
        ? await writer
            .updateTable('local_media')
            .set({ quarantined_by: null })
            .where('media_id', '=', mediaId)
            .where('quarantined_by', 'is not', null)
            .executeTakeFirstOrThrow()
        : await writer
            .updateTable('remote_media')
            .set({ quarantined_by: null })
            .where('server_name', '=', serverName)
            .where('media_id', '=', mediaId)
            .where('quarantined_by', 'is not', null)
            .executeTakeFirstOrThrow();
      if (released.numUpdatedRows > 0n)
        await recordQuarantineChanges(writer, [{ serverName, mediaId }], false);
    });
  }

  /**
   * Reads the last quarantine or release of each file, the oldest first.
   * @param after id of the last change that is known; 0 for none
   */
  changes(after: number, limit: number): Promise<QuarantineChange[]> {
    return readQuarantineChanges(this.#deps.database, after, limit);
  }

  /** Protects an upload from quarantine and retention, or ends the protection. @returns whether the upload exists */
  async setProtected(mediaId: string, isProtected: boolean): Promise<boolean> {
    return this.#deps.database.transaction<MediaTables, boolean>(async (writer) => {
      const { numUpdatedRows } = await writer
        .updateTable('local_media')
        .set({ protected: isProtected ? 1 : 0 })
        .where('media_id', '=', mediaId)
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    });
  }

  /** Deletes uploads and images of URL previews, with their files. @returns the ids of the deleted ones */
  deleteLocal(mediaIds: readonly string[]): Promise<string[]> {
    return this.#deleteByIds(mediaIds, (deletion) => deletion);
  }

  async #deleteByIds(mediaIds: readonly string[], restrict: Restriction): Promise<string[]> {
    const deleted: string[] = [];
    for (let start = 0; start < mediaIds.length; start += rowsAtOnce) {
      const chunk = mediaIds.slice(start, start + rowsAtOnce);
      const rows = await this.#deps.database
        .reader<MediaTables>()
        .selectFrom('local_media')
        .select(['media_id', 'file_id'])
        .where('media_id', 'in', chunk)
        .execute();
      deleted.push(...(await this.#deleteUploads(rows, restrict)));
    }
    return deleted;
  }

  /**
   * Deletes uploads that were not read or uploaded since a time, except quarantined and protected uploads.
   * @param deleted receives the number of uploads deleted so far, after each transaction
   */
  async purgeLocal(
    before: number,
    signal: AbortSignal,
    deleted: (count: number) => Promise<void>,
  ): Promise<void> {
    for (let count = 0; ; ) {
      await this.#deps.access.flush();
      const rows = await this.#deps.database
        .reader<MediaTables>()
        .selectFrom('local_media')
        .select(['media_id', 'file_id'])
        .where(sql`coalesce(last_access_at, uploaded_at)`, '<', before)
        .where('quarantined_by', 'is', null)
        .where('protected', '=', 0)
        .where('preview_until', 'is', null)
        .limit(rowsAtOnce)
        .execute();
      if (rows.length === 0 || signal.aborted) return;
      count += (await this.#deleteUploads(rows, exceptKept)).length;
      await deleted(count);
    }
  }

  /**
   * Deletes uploads by last use and size, except quarantined and protected uploads.
   * @param kept receives media ids, and returns those that are kept
   * @param limit maximum number of uploads to delete
   * @returns the ids of the deleted uploads
   */
  async deleteOldLocal(
    criteria: DeletionCriteria,
    kept: (mediaIds: readonly string[]) => Promise<ReadonlySet<string>>,
    limit: number,
  ): Promise<string[]> {
    await this.#deps.access.flush();
    const deleted: string[] = [];
    for (let after = ''; ; ) {
      const ids = await this.#readOldLocal(criteria, after);
      const keptIds = await kept(ids);
      const unused = ids.filter((id) => !keptIds.has(id)).slice(0, limit - deleted.length);
      deleted.push(...(await this.#deleteByIds(unused, exceptKept)));
      if (ids.length < rowsAtOnce || deleted.length >= limit) return deleted;
      after = ids.at(-1) ?? after;
    }
  }

  /**
   * Deletes copies of remote media that were not read or fetched since a time, except quarantined copies.
   * @param deleted receives the number of copies deleted so far, after each transaction
   * @returns the number of deleted copies
   */
  async purgeRemote(
    before: number,
    signal?: AbortSignal,
    deleted?: (count: number) => Promise<void>,
  ): Promise<number> {
    const { database, disk, access, providerStorage } = this.#deps;
    for (let count = 0; ; ) {
      await access.flush();
      const rows = await database
        .reader<MediaTables>()
        .selectFrom('remote_media')
        .select('file_id')
        .where(sql`coalesce(last_access_at, fetched_at)`, '<', before)
        .where('quarantined_by', 'is', null)
        .limit(rowsAtOnce)
        .execute();
      if (rows.length === 0 || signal?.aborted) return count;
      const ids = rows.map((row) => row.file_id);
      let removed = 0;
      await disk.deleteWithRows('remote', ids, () =>
        database.transaction<MediaTables, string[]>(async (writer) => {
          const rows = await writer
            .deleteFrom('remote_media')
            .where('file_id', 'in', ids)
            .where('quarantined_by', 'is', null)
            .returning('file_id')
            .execute();
          const deletedFileIds = rows.map((row) => row.file_id);
          await providerStorage.scheduleDeletion(writer, 'remote', deletedFileIds);
          removed = deletedFileIds.length;
          return deletedFileIds;
        }),
      );
      count += removed;
      await deleted?.(count);
    }
  }

  /**
   * Deletes rows and files of uploads.
   * @returns the ids of the deleted uploads, without unknown uploads and uploads that did not meet the restriction
   */
  async #deleteUploads(
    uploads: readonly { readonly media_id: string; readonly file_id: string | null }[],
    restrict: Restriction,
  ): Promise<string[]> {
    const { database, disk, providerStorage } = this.#deps;
    if (uploads.length === 0) return [];
    const fileIds = uploads.flatMap(({ file_id }) => file_id ?? []);
    const mediaIds = uploads.map(({ media_id }) => media_id);
    let deleted: string[] = [];
    await disk.deleteWithRows('local', fileIds, () =>
      database.transaction<MediaTables, string[]>(async (writer) => {
        const rows = await restrict(writer.deleteFrom('local_media').where('media_id', 'in', mediaIds))
          .returning(['media_id', 'file_id', 'user_id', 'size', 'preview_until'])
          .execute();
        await subtractFromUsage(writer, rows);
        deleted = rows.map((row) => row.media_id);
        const deletedFileIds = rows.flatMap(({ file_id }) => file_id ?? []);
        await providerStorage.scheduleDeletion(writer, 'local', deletedFileIds);
        return deletedFileIds;
      }),
    );
    return deleted;
  }

  async #readOldLocal({ before, largerThan }: DeletionCriteria, after: string): Promise<string[]> {
    const rows = await this.#deps.database
      .reader<MediaTables>()
      .selectFrom('local_media')
      .select('media_id')
      .where((row) =>
        row.or([
          row('last_access_at', '<', before),
          row.and([row('last_access_at', 'is', null), row('uploaded_at', '<', before)]),
        ]),
      )
      .where('size', '>', largerThan)
      .where('preview_until', 'is', null)
      .where('quarantined_by', 'is', null)
      .where('protected', '=', 0)
      .where('media_id', '>', after)
      .orderBy('media_id')
      .limit(rowsAtOnce)
      .execute();
    return rows.map((row) => row.media_id);
  }

  /**
   * Quarantines one file.
   * @returns the hash of the file; null for a media id that waits for its upload; `undefined` for an unknown or protected
   * file
   */
  async #quarantineFile(
    writer: Writer<MediaTables>,
    { serverName, mediaId }: MediaAddress,
    administrator: string,
  ): Promise<string | null | undefined> {
    const change = { quarantined_by: administrator };
    const row =
      serverName === this.#deps.serverName
        ? await writer
            .updateTable('local_media')
            .set(change)
            .where('media_id', '=', mediaId)
            .where('protected', '=', 0)
            .returning('sha256')
            .executeTakeFirst()
        : await writer
            .updateTable('remote_media')
            .set(change)
            .where('server_name', '=', serverName)
            .where('media_id', '=', mediaId)
            .returning('sha256')
            .executeTakeFirst();
    return row?.sha256;
  }
}

/**
 * Quarantines all files with a content hash, except protected files.
 * @returns the files that were not quarantined before
 */
async function quarantineHash(
  writer: Writer<MediaTables>,
  hash: string,
  administrator: string,
  localServerName: string,
): Promise<MediaAddress[]> {
  const change = { quarantined_by: administrator };
  const local = await writer
    .updateTable('local_media')
    .set(change)
    .where('sha256', '=', hash)
    .where('protected', '=', 0)
    .where('quarantined_by', 'is', null)
    .returning('media_id')
    .execute();
  const remote = await writer
    .updateTable('remote_media')
    .set(change)
    .where('sha256', '=', hash)
    .where('quarantined_by', 'is', null)
    .returning(['server_name', 'media_id'])
    .execute();
  return [
    ...local.map((row) => ({ serverName: localServerName, mediaId: row.media_id })),
    ...remote.map((row) => ({ serverName: row.server_name, mediaId: row.media_id })),
  ];
}
