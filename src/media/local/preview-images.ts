import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import { type Randomness, randomLetters } from '../../kernel/randomness.ts';
import type { MediaStore } from '../disk/media-store.ts';
import type { MediaFile } from '../media-file.ts';
import type { MediaModeration } from '../moderation/media-moderation.ts';
import { quarantinedHash } from '../moderation/quarantined-hash.ts';
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
  readonly options: { readonly enable_authenticated_media: boolean };
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

const idsAtOnce = 200;

/** Stores images of URL previews for three days. They belong to no user, so that they do not count for upload quotas. */
export class PreviewImages {
  readonly #deps: PreviewImagesDeps;

  constructor(deps: PreviewImagesDeps) {
    this.#deps = deps;
  }

  /**
   * Stores an image. Its content type is determined by its bytes.
   * @returns `undefined` when the bytes are not an image, or an administrator has quarantined them
   * @throws errors of `content`
   */
  async store(
    fileName: string | undefined,
    content: AsyncIterable<Uint8Array>,
  ): Promise<StoredPreviewImage | undefined> {
    const { database, clock, randomness, serverName, disk, thumbnails, moderation, options } = this.#deps;
    const mediaId = randomLetters(randomness, 24);
    const description = { contentType: 'application/octet-stream', fileName };
    const file = await disk.store('local', content, (stored) =>
      database.transaction<MediaTables, store.UploadedFile>(async (writer) => {
        const quarantinedBy = await quarantinedHash(writer, stored.sha256);
        const isAuthenticated = options.enable_authenticated_media;
        const described = { ...stored, ...description, isAuthenticated, quarantinedBy };
        const at = clock.now();
        await store.insertPreviewImage(writer, { mediaId, at, until: at + lifetime }, described);
        return described;
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

  /** Deletes the images whose lifetime has ended. */
  async deleteOld(): Promise<void> {
    const { database, clock, moderation } = this.#deps;
    for (;;) {
      const ids = await store.readOldPreviewImages(database.reader(), clock.now(), idsAtOnce);
      await moderation.deleteLocal(ids);
      if (ids.length < idsAtOnce) return;
    }
  }
}
