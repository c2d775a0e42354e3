import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import { type Randomness, randomLetters } from '../../kernel/randomness.ts';
import { forbidden, limitExceeded, MatrixError } from '../../protocol/index.ts';
import type { MediaStore } from '../disk/media-store.ts';
import { mediaNotFound } from '../media-address.ts';
import type { MediaDescription, MediaFile } from '../media-file.ts';
import type { MediaRepositoryRules, UploadLimit } from '../media-rules.ts';
import type { MediaAccess, MediaReading } from '../moderation/media-access.ts';
import { administratorWhoQuarantined } from '../moderation/quarantined-hash.ts';
import type { ProviderStorage } from '../providers/provider-storage.ts';
import * as store from '../store.ts';
import type { MediaTables } from '../tables.ts';
import { formatOf } from '../thumbnails/image.ts';
import { PendingUploads } from './pending-uploads.ts';
import { UploadQuota } from './upload-quota.ts';

export interface LocalMediaOptions {
  readonly enable_authenticated_media: boolean;
  readonly max_pending_media_uploads: number;
  /** Milliseconds. */
  readonly unused_expiration_time: number;
  readonly media_upload_limits: readonly UploadLimit[];
}

export interface LocalMediaDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly disk: MediaStore;
  readonly access: MediaAccess;
  /** Stores uploads at storage providers. */
  readonly providerStorage: ProviderStorage;
  /** Receives each uploaded file that begins like an image and is not quarantined, once its row is committed. */
  readonly uploaded: (file: MediaFile) => void;
  readonly options: LocalMediaOptions;
  /** Rules that modules supply. */
  readonly rules?: MediaRepositoryRules | undefined;
}

const mediaIdLength = 24;

const notYetUploaded = () =>
  new MatrixError(504, 'M_NOT_YET_UPLOADED', 'This content has not been uploaded yet');

const alreadyUploaded = () =>
  new MatrixError(409, 'M_CANNOT_OVERWRITE_MEDIA', 'This content has been uploaded already');

/** Stores the uploads of local users. Source: client-server API, "Content repository". */
export class LocalMedia {
  readonly #deps: LocalMediaDeps;
  readonly #quota: UploadQuota;
  readonly #pendingUploads: PendingUploads;
  /**
   * Lets each user have only one transaction at a time that stores an upload or makes a media id. These transactions
   * check the same limits, and on PostgreSQL concurrent transactions do not see each other's rows.
   */
  readonly #storing = new KeyedMutex();

  constructor(deps: LocalMediaDeps) {
    this.#deps = deps;
    this.#quota = new UploadQuota(deps.options.media_upload_limits, deps.clock, deps.rules);
    this.#pendingUploads = new PendingUploads(deps.clock);
  }

  /**
   * Stores a file under a new media id.
   * @returns the media id
   * @throws MatrixError M_FORBIDDEN when the user's quota is exceeded; errors of `content`, of the disk and of the rules
   * of modules
   */
  async upload(
    userId: string,
    description: MediaDescription,
    content: AsyncIterable<Uint8Array>,
  ): Promise<string> {
    const { clock, randomness } = this.#deps;
    const mediaId = randomLetters(randomness, mediaIdLength);
    await this.#receive(userId, description, content, (writer, file) =>
      store.insertUploaded(writer, { mediaId, userId, at: clock.now() }, file),
    );
    return mediaId;
  }

  /**
   * Makes a media id for a later upload.
   * @throws MatrixError M_LIMIT_EXCEEDED when the user has too many pending uploads
   */
  async create(userId: string): Promise<{ readonly mediaId: string; readonly expiresAt: number }> {
    const { database, clock, randomness, options } = this.#deps;
    const mediaId = randomLetters(randomness, mediaIdLength);
    const now = clock.now();
    const expiresAt = now + options.unused_expiration_time;
    const insert = () =>
      database.transaction<MediaTables, void>(async (writer) => {
        await store.deleteExpired(writer, userId, now);
        const pending = await store.readPending(writer, userId);
        if (pending.length >= options.max_pending_media_uploads) {
          throw limitExceeded(Math.max(1, (pending[0] ?? expiresAt) - now));
        }
        await store.insertPending(writer, { mediaId, userId, at: now, expiresAt });
      });
    await this.#storing.run(userId, insert);
    return { mediaId, expiresAt };
  }

  /**
   * Stores a file under a media id that was made earlier.
   * @throws MatrixError M_NOT_FOUND, M_FORBIDDEN, M_CANNOT_OVERWRITE_MEDIA; the errors of `upload`
   */
  async complete(
    userId: string,
    mediaId: string,
    description: MediaDescription,
    content: AsyncIterable<Uint8Array>,
  ): Promise<void> {
    const { clock } = this.#deps;
    await this.#checkMayComplete(userId, mediaId);
    await this.#receive(userId, description, content, async (writer, file) => {
      if (await store.completePending(writer, { mediaId, at: clock.now() }, file)) return;
      throw (await store.readLocal(writer, mediaId)) ? alreadyUploaded() : mediaNotFound();
    });
    this.#pendingUploads.announce(mediaId);
  }

  /**
   * Finds an uploaded file.
   * @param uploadTimeout milliseconds to wait for a pending upload
   * @throws MatrixError M_NOT_FOUND, M_NOT_YET_UPLOADED
   */
  async find(
    mediaId: string,
    uploadTimeout: number,
    signal: AbortSignal,
    reading?: MediaReading,
  ): Promise<MediaFile> {
    const file = await this.#pendingUploads.wait(
      mediaId,
      () => this.#findUploaded(mediaId),
      uploadTimeout,
      signal,
    );
    if (file === undefined) throw notYetUploaded();
    return this.#deps.access.open(file, reading);
  }

  /** Returns the properties of an uploaded file; `undefined` when there is no such file. */
  async describe(mediaId: string): Promise<MediaFile | undefined> {
    const media = await store.readLocal(this.#deps.database.reader(), mediaId);
    return media?.file;
  }

  async #findUploaded(mediaId: string): Promise<MediaFile | undefined> {
    const { database, clock } = this.#deps;
    const media = await store.readLocal(database.reader(), mediaId);
    if (media === undefined) throw mediaNotFound();
    if (media.file === undefined && clock.now() >= (media.expiresAt ?? 0)) throw mediaNotFound();
    return media.file;
  }

  async #checkMayComplete(userId: string, mediaId: string): Promise<void> {
    const { database, clock } = this.#deps;
    const media = await store.readLocal(database.reader(), mediaId);
    if (media === undefined) throw mediaNotFound();
    if (media.userId !== userId) throw forbidden('The media id was created by another user');
    if (media.file !== undefined) throw alreadyUploaded();
    if (clock.now() >= (media.expiresAt ?? 0)) throw mediaNotFound();
  }

  /**
   * Stores content as a file, and calls `record` to write its row in the transaction that checks the quota again.
   * Deletes the file when a check or the transaction fails, unless its row may exist.
   */
  async #receive(
    userId: string,
    description: MediaDescription,
    content: AsyncIterable<Uint8Array>,
    record: (writer: Parameters<typeof store.insertUploaded>[0], file: store.NewMediaFile) => Promise<void>,
  ): Promise<void> {
    const { database, disk, providerStorage, uploaded, options, rules = {} } = this.#deps;
    const limits = await this.#quota.limitsOf(userId);
    await this.#quota.check(database.reader(), limits, userId, 0);
    const isAuthenticated = options.enable_authenticated_media;
    const file = await disk.store('local', content, async (stored) => {
      await rules.checkSize?.(userId, stored.size);
      await rules.checkFile?.({
        userId,
        remoteServer: undefined,
        ...description,
        ...stored,
        read: () => disk.read('local', stored.fileId),
      });
      try {
        await providerStorage.storeNow(stored);
        const insert = () =>
          database.transaction<MediaTables, store.NewMediaFile>(async (writer) => {
            await this.#quota.check(writer, limits, userId, stored.size);
            const quarantinedBy = await administratorWhoQuarantined(writer, stored.sha256);
            const uploadedFile = { ...stored, ...description, isAuthenticated, quarantinedBy };
            await record(writer, uploadedFile);
            await providerStorage.schedule(writer, 'local', stored);
            return uploadedFile;
          });
        return await this.#storing.run(userId, insert);
      } catch (error) {
        // The row may exist although its transaction has failed.
        if (!(await disk.mayHaveRow('local', stored.fileId))) await providerStorage.discard(stored);
        throw error;
      }
    });
    const mayBeImage = file.quarantinedBy === undefined && formatOf(file.beginning) !== undefined;
    if (mayBeImage) uploaded({ area: 'local', ...file, isQuarantined: false });
  }
}
