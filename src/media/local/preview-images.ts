import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { type Randomness, randomLetters } from '../../kernel/randomness.ts';
import type { RateLimit, RateLimiter } from '../../kernel/rate-limits/index.ts';
import type { MediaStore } from '../disk/media-store.ts';
import type { MediaFile } from '../media-file.ts';
import type { MediaModeration } from '../moderation/media-moderation.ts';
import { administratorWhoQuarantined } from '../moderation/quarantined-hash.ts';
import * as store from '../store.ts';
import type { MediaTables } from '../tables.ts';
import type { Thumbnails } from '../thumbnails/thumbnails.ts';

export interface PreviewImagesDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly serverName: string;
  readonly disk: MediaStore;
  readonly thumbnails: Thumbnails;
  readonly moderation: MediaModeration;
  /** Limits the bytes of the preview images that are stored for one user: `previewImageShare`. */
  readonly limit: RateLimiter;
  readonly options: { readonly enable_authenticated_media: boolean };
  /** Maximum bytes of all images, 2 GiB by default. */
  readonly maxBytes?: number;
}

/** A stored image of a URL preview. */
export interface StoredPreviewImage {
  readonly mxcUri: string;
  readonly contentType: string;
  /** Bytes. */
  readonly size: number;
  /** Pixels. */
  readonly width: number;
  readonly height: number;
}

/** Milliseconds that an image is stored: longer than the preview that links to it. */
const lifetime = 3 * 24 * 3_600_000;

/** Maximum number of images that are deleted at once. */
const idsAtOnce = 200;

/** Default maximum bytes of all images: no user's quota bounds them, because they belong to no user. */
const maxBytes = 2 * 1024 ** 3;

/**
 * Limits the bytes of the images that previews for one user cause: an eighth of `maxBytes` at once, and another eighth
 * within the lifetime of an image. A restart resets the count.
 */
export const previewImageShare: RateLimit = {
  burst_count: maxBytes / 8,
  per_second: maxBytes / 8 / (lifetime / 1_000),
};

/**
 * Stores images of URL previews for three days, or until newer images need their space. They belong to no user, so that
 * they do not count for upload quotas.
 */
export class PreviewImages {
  readonly #deps: PreviewImagesDeps;
  /** Bytes of all stored images and unfinished downloads; `undefined` until the stored images are counted. */
  #size: number | undefined;
  readonly #counting = new LoadOnce<string, void>();

  constructor(deps: PreviewImagesDeps) {
    this.#deps = deps;
  }

  /**
   * Stores an image. Its content type is determined by its bytes.
   * @param userId the user for whom the preview is made
   * @returns `undefined` when the bytes are not an image, when an administrator has quarantined them, and when the user has
   * caused too many bytes of images
   * @throws errors of `content`
   */
  async store(
    userId: string,
    fileName: string | undefined,
    content: AsyncIterable<Uint8Array>,
  ): Promise<StoredPreviewImage | undefined> {
    const counted = { bytes: 0 };
    try {
      await this.#counting.run('', () => this.#makeSpace());
      const image = await this.#store(fileName, this.#bounded(userId, content, counted));
      if (image !== undefined) return image;
    } catch (error) {
      this.#count(-counted.bytes);
      if (error instanceof ShareExceeded) return undefined;
      throw error;
    }
    this.#count(-counted.bytes);
    return undefined;
  }

  async #store(
    fileName: string | undefined,
    content: AsyncIterable<Uint8Array>,
  ): Promise<StoredPreviewImage | undefined> {
    const { database, clock, randomness, serverName, disk, thumbnails, moderation, options } = this.#deps;
    const mediaId = randomLetters(randomness, 24);
    const description = { contentType: 'application/octet-stream', fileName };
    const file = await disk.store('local', content, (stored) =>
      database.transaction<MediaTables, store.NewMediaFile>(async (writer) => {
        const quarantinedBy = await administratorWhoQuarantined(writer, stored.sha256);
        const isAuthenticated = options.enable_authenticated_media;
        const previewImage = { ...stored, ...description, isAuthenticated, quarantinedBy };
        const at = clock.now();
        await store.insertPreviewImage(writer, { mediaId, at, until: at + lifetime }, previewImage);
        return previewImage;
      }),
    );
    const stored: MediaFile = { area: 'local', ...file, isQuarantined: false };
    const image = file.quarantinedBy === undefined ? await thumbnails.measure(stored) : undefined;
    if (image === undefined) {
      await moderation.deleteLocal([mediaId]);
      return undefined;
    }
    const contentType = `image/${image.format}`;
    await database.transaction<MediaTables, void>((writer) =>
      store.setContentType(writer, mediaId, contentType),
    );
    const { width, height } = image;
    return { mxcUri: `mxc://${serverName}/${mediaId}`, contentType, size: file.size, width, height };
  }

  /**
   * Yields the bytes, and counts them for all images and for the user.
   * @param counted receives the number of bytes that were added to the bytes of all images
   * @throws ShareExceeded
   */
  async *#bounded(
    userId: string,
    content: AsyncIterable<Uint8Array>,
    counted: { bytes: number },
  ): AsyncGenerator<Uint8Array> {
    for await (const chunk of content) {
      if (this.#deps.limit.tryTake(userId, chunk.length) > 0) throw new ShareExceeded();
      counted.bytes += chunk.length;
      this.#count(chunk.length);
      yield chunk;
    }
  }

  #count(bytes: number): void {
    if (this.#size !== undefined) this.#size += bytes;
  }

  /** Deletes the oldest images until all images together are smaller than the maximum size. */
  async #makeSpace(): Promise<void> {
    const { database, moderation, maxBytes: max = maxBytes } = this.#deps;
    for (;;) {
      this.#size ??= await store.sizeOfPreviewImages(database.reader());
      if (this.#size < max) return;
      const oldest = await store.readOldestPreviewImages(database.reader(), idsAtOnce);
      if (oldest.length === 0) return;
      // Frees more bytes than this image needs, so that not every new image causes a deletion.
      let freed = 0;
      const ids: string[] = [];
      for (const { mediaId, size } of oldest) {
        if (freed > this.#size - max + max / 16) break;
        ids.push(mediaId);
        freed += size;
      }
      await moderation.deleteLocal(ids);
      this.#count(-freed);
    }
  }

  /** Deletes the images whose lifetime has ended. */
  async deleteOld(): Promise<void> {
    const { database, clock, moderation } = this.#deps;
    // The next call counts the images again, because administrators delete images, too.
    this.#size = undefined;
    for (;;) {
      const ids = await store.readExpiredPreviewImages(database.reader(), clock.now(), idsAtOnce);
      await moderation.deleteLocal(ids);
      if (ids.length < idsAtOnce) return;
    }
  }
}

/** A user has caused too many bytes of images. */
class ShareExceeded extends Error {}
