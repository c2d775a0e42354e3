import { buffer } from 'node:stream/consumers';
import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { OutboundHttp } from '../kernel/outbound/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import type { RateLimiter } from '../kernel/rate-limits/index.ts';
import { parseMxcUri } from '../protocol/index.ts';
import type { MediaConfig } from './config.ts';
import { essenceOf } from './description.ts';
import { MediaStore } from './disk/media-store.ts';
import { ThumbnailStore } from './disk/thumbnail-store.ts';
import { LocalMedia } from './local/local-media.ts';
import { PreviewImages } from './local/preview-images.ts';
import type { MediaRepositoryRules } from './media-rules.ts';
import { MediaAccess } from './moderation/media-access.ts';
import { MediaModeration } from './moderation/media-moderation.ts';
import { MediaFiles } from './providers/media-files.ts';
import { openProviders } from './providers/open-providers.ts';
import { ProviderStorage } from './providers/provider-storage.ts';
import type { MediaServers } from './remote/media-servers.ts';
import { RemoteMedia } from './remote/remote-media.ts';
import { type DeletedMedia, MediaRetention } from './retention/media-retention.ts';
import { downloadRoutes } from './routes/download-routes.ts';
import { MediaFinder } from './routes/finder.ts';
import { mediaServerRoutes } from './routes/server-routes.ts';
import { thumbnailRoutes } from './routes/thumbnail-routes.ts';
import { uploadRoutes } from './routes/upload-routes.ts';
import { streamOf } from './serving/serve-content.ts';
import { isFileStored } from './store.ts';
import { ImageTasks } from './thumbnails/image-tasks.ts';
import { Thumbnails } from './thumbnails/thumbnails.ts';

export interface MediaSliceDeps {
  readonly caches: CacheRegistry;
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly randomness: Randomness;
  readonly log: Logger;
  readonly serverName: string;
  readonly servers: MediaServers;
  /** Sends requests to storage providers. Blocks no address, because the operator has chosen the providers. */
  readonly http: OutboundHttp;
  /** Environment variables, which may contain credentials of storage providers. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly limits: {
    /** Limits `POST /media/v1/create` per user. */
    readonly create: RateLimiter;
    /** Limits the bytes from remote servers, per client address. */
    readonly remote: RateLimiter;
    /** Limits the bytes of images of URL previews, per user: `previewImageShare`. */
    readonly previewImages: RateLimiter;
  };
  readonly options: MediaConfig;
  /** Rules that modules supply. */
  readonly rules?: MediaRepositoryRules | undefined;
}

/** The media repository. */
export interface MediaSlice {
  readonly routes: readonly Route[];
  /** Returns the properties of a local file. */
  describe(mxcUri: string): Promise<{ size: number; mimeType: string; sha256: string } | undefined>;
  /** Stores bytes as an upload of a local user. @returns the `mxc://` URI */
  store(userId: string, file: { readonly contentType: string; readonly bytes: Uint8Array }): Promise<string>;
  /**
   * Returns a thumbnail of a local image, which is a square unless the image is small; `undefined` when the image does
   * not exist or no thumbnail can be made.
   */
  thumbnail(mxcUri: string, size: number): Promise<{ contentType: string; bytes: Buffer } | undefined>;
  readonly moderation: MediaModeration;
  /** Stores images of URL previews. */
  readonly previewImages: PreviewImages;
  /**
   * Aborts downloads from remote servers and the making of thumbnails, and writes the times at which files were read.
   */
  stop(): Promise<void>;
}

const hour = 3_600_000;

/** Opens the media repository. @throws Error when the media directory or a storage provider cannot be used */
export async function openMediaRepository(deps: MediaSliceDeps): Promise<MediaSlice> {
  const { database, serverName, options, limits, log, randomness } = deps;
  const disk = await MediaStore.open(
    { directory: options.media_store_path, randomness, log },
    (area, fileId) => isFileStored(database.reader(), area, fileId),
  );
  const thumbnailStore = await ThumbnailStore.open({
    directory: options.media_store_path,
    randomness,
    maxKept: 2 * options.thumbnail_sizes.length + 64,
  });
  const providers = await openProviders(options.media_storage_providers, {
    clock: deps.clock,
    http: deps.http,
    environment: deps.environment,
  });
  const providerStorage = new ProviderStorage({ ...deps, disk, providers });
  await database.transaction(async (writer) => {
    for (const { area, fileId } of disk.swept) await providerStorage.scheduleDeletion(writer, area, [fileId]);
  });
  const files = new MediaFiles(disk, providerStorage);
  const thumbnails = new Thumbnails({ ...deps, files, store: thumbnailStore, tasks: new ImageTasks(deps) });
  const access = new MediaAccess(deps);
  const local = new LocalMedia({
    ...deps,
    disk,
    access,
    providerStorage,
    uploaded: (file) => void thumbnails.prepare(file),
  });
  const remote = new RemoteMedia({ ...deps, files, providerStorage, access, limit: limits.remote });
  const finder = new MediaFinder({ serverName, files, local, remote, options });
  const moderation = new MediaModeration({ ...deps, disk, access, providerStorage });
  const previewImages = new PreviewImages({
    ...deps,
    limit: limits.previewImages,
    disk,
    thumbnails,
    moderation,
  });
  deps.jobs.every('media/delete-preview-images', hour, { run: () => previewImages.deleteOld() });
  const retention = new MediaRetention({ ...deps, moderation });
  deps.jobs.every<DeletedMedia>('media/retention', hour, {
    run: ({ signal, progress }) => retention.apply(signal, progress),
    progressOf: (deleted) => ({ done: deleted === null ? 0 : deleted.uploads + deleted.copies, total: null }),
  });
  return {
    routes: [
      ...uploadRoutes({ local, serverName, createLimit: limits.create, options, config: deps.rules?.config }),
      ...downloadRoutes(finder),
      ...thumbnailRoutes(finder, thumbnails),
      ...mediaServerRoutes({ serverName, files, local, thumbnails, randomness }),
    ],
    async describe(mxcUri) {
      const address = parseMxcUri(mxcUri);
      const file = address?.serverName === serverName ? await local.describe(address.mediaId) : undefined;
      return file && { size: file.size, mimeType: essenceOf(file.contentType), sha256: file.sha256 };
    },
    async store(userId, { contentType, bytes }) {
      const content = (async function* () {
        // A copy, because the store frees the memory of its chunks, and the caller may still use the bytes.
        yield Buffer.from(bytes);
      })();
      const mediaId = await local.upload(userId, { contentType, fileName: undefined }, content);
      return `mxc://${serverName}/${mediaId}`;
    },
    async thumbnail(mxcUri, size) {
      const address = parseMxcUri(mxcUri);
      if (address?.serverName !== serverName) return undefined;
      try {
        const file = await local.find(address.mediaId, 0, new AbortController().signal);
        const thumbnailRequest = { width: size, height: size, method: 'crop', isAnimated: false } as const;
        const content = await thumbnails.find(file, thumbnailRequest);
        return { contentType: content.contentType, bytes: await buffer(streamOf(content)) };
      } catch (error) {
        log.debug({ err: error }, 'Failed to make a thumbnail of an image');
        return undefined;
      }
    },
    moderation,
    previewImages,
    stop() {
      remote.stop();
      thumbnails.stop();
      return access.flush();
    },
  };
}
