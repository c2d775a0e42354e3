import type { Cache, CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { OpenFile } from '../../kernel/http/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { TaskFailure } from '../../kernel/task-processes/index.ts';
import { limitExceeded, MatrixError, unknown } from '../../protocol/index.ts';
import { StorageError } from '../disk/storage-error.ts';
import type { ThumbnailStore } from '../disk/thumbnail-store.ts';
import { mediaNotFound } from '../media-address.ts';
import type { MediaFile } from '../media-file.ts';
import type { MediaFiles } from '../providers/media-files.ts';
import { type Content, contentOf } from '../serving/serve-content.ts';
import { chooseTarget, isWhole, type Target, type ThumbnailOptions, targetOf } from './choose.ts';
import { formatOf, type Image, readImage, signatureLength } from './image.ts';
import type { ThumbnailFormat } from './image-task.ts';
import { type ImageTasks, NoThumbnail, type TaskUrgency } from './image-tasks.ts';
import { areaOf, type ThumbnailSize } from './sizes.ts';

export interface ThumbnailsDeps {
  readonly caches: CacheRegistry;
  readonly clock: Clock;
  readonly log: Logger;
  readonly files: MediaFiles;
  readonly store: ThumbnailStore;
  readonly tasks: ImageTasks;
  readonly options: ThumbnailOptions & {
    /** Width times height. */
    readonly max_image_pixels: number;
  };
}

/** A request for a thumbnail. */
export interface ThumbnailRequest extends ThumbnailSize {
  /** Whether the thumbnail should be animated if the image is. */
  readonly isAnimated: boolean;
}

/** A thumbnail with its size and format. */
interface Variant {
  readonly target: Target;
  readonly format: ThumbnailFormat;
  readonly isAnimated: boolean;
}

/** Maximum number of images whose properties are cached. */
const maxImages = 4_000;

/** Maximum number of cached failures. */
const maxFailures = 500;

/** Maximum number of requests that wait for thumbnails of one file. */
const maxWaiting = 50;

/** Milliseconds until a failed thumbnail is retried. */
const failureTime = 10 * 60_000;

/** Maximum number of frames of an animation; `max_image_pixels` limits all frames together. */
const maxFrames = 1_000;

/** Makes and stores thumbnails of files. Source: client-server API, "Content repository", "Thumbnails". */
export class Thumbnails {
  readonly #deps: ThumbnailsDeps;
  readonly #images: Cache<string, Image>;
  /** Times of failures, by file and by whether the thumbnail was to be animated. */
  readonly #failures: Cache<string, number>;
  readonly #running = new LoadOnce<string, unknown>();
  /**
   * Lets one file occupy at most two processes: one for requests, and one for the thumbnails that are made after the
   * upload.
   */
  readonly #mutex = new KeyedMutex();

  constructor(deps: ThumbnailsDeps) {
    this.#deps = deps;
    this.#images = deps.caches.create('images', { size: maxImages });
    this.#failures = deps.caches.create('failed_thumbnails', {
      size: maxFailures,
      isExpired: (failedAt) => deps.clock.now() - failedAt >= failureTime,
    });
  }

  /**
   * Returns a thumbnail, and makes it if it is missing. Returns the file itself if the image is small enough.
   * @throws MatrixError M_NOT_FOUND when the file is missing; M_TOO_LARGE (413; 502 for remote media); M_UNKNOWN (400)
   * when the file is not a readable image, and when the process for images does not start; M_LIMIT_EXCEEDED when too many
   * requests wait
   */
  async find(file: MediaFile, request: ThumbnailRequest): Promise<Content> {
    const { files, options } = this.#deps;
    if (!(await files.mayExist(file))) throw mediaNotFound();
    try {
      const image = await this.#examine(file, 'urgent');
      if (areaOf(image) > options.max_image_pixels) throw tooLarge(file);
      const target = chooseTarget(image, request, options);
      if (target === undefined && canServeOriginal(image, request)) {
        const whole = await contentOf(files, file);
        return { ...whole, contentType: `image/${image.format}`, fileName: `thumbnail.${image.format}` };
      }
      const wanted = target ?? targetOf(image, { ...image, method: 'scale' });
      return await this.#findVariant(file, image, wanted, request.isAnimated);
    } catch (error) {
      if (error instanceof StorageError)
        this.#deps.log.error({ err: error.cause }, 'Failed to read or store a thumbnail or its image');
      throw errorOf(error);
    }
  }

  /** Returns the properties of an image; `undefined` for other content. */
  async measure(file: MediaFile): Promise<Image | undefined> {
    try {
      return await this.#examine(file, 'urgent');
    } catch (error) {
      if (error instanceof NoThumbnail) return undefined;
      throw errorOf(error);
    }
  }

  /** Makes the thumbnails of `thumbnail_sizes` in the background. Never fails: missing thumbnails are made on request. */
  async prepare(file: MediaFile): Promise<void> {
    const { options, log } = this.#deps;
    try {
      const image = await this.#examine(file, 'background');
      if (areaOf(image) > options.max_image_pixels) return;
      for (const size of options.thumbnail_sizes) {
        const target = targetOf(image, size);
        if (isWhole(image, target) && canServeOriginal(image, { isAnimated: false })) continue;
        const content = await this.#provide(file, variantOf(image, target, false), 'background');
        if (content.body instanceof OpenFile) content.body.close();
      }
    } catch (error) {
      if (!(error instanceof NoThumbnail))
        log.debug({ err: error }, 'Failed to make thumbnails after the upload');
    }
  }

  /** Aborts the making of thumbnails. */
  stop(): void {
    this.#deps.tasks.stop();
  }

  async #findVariant(
    file: MediaFile,
    image: Image,
    target: Target,
    wantsAnimation: boolean,
  ): Promise<Content> {
    const { options } = this.#deps;
    const pixels = areaOf(image) * image.frames;
    const canAnimate = image.frames > 1 && image.frames <= maxFrames && pixels <= options.max_image_pixels;
    if (wantsAnimation && canAnimate) {
      try {
        return await this.#provide(file, variantOf(image, target, true), 'urgent');
      } catch (error) {
        // A thumbnail without animation is served instead.
        if (!(error instanceof NoThumbnail)) throw error;
      }
    }
    return this.#provide(file, variantOf(image, target, false), 'urgent');
  }

  async #provide(file: MediaFile, variant: Variant, urgency: TaskUrgency): Promise<Content> {
    const { store } = this.#deps;
    const name = nameOf(variant);
    let body = await store.open(file, name);
    if (body === undefined) {
      await this.#once(`${urgency} ${file.fileId}/${name}`, () => this.#make(file, variant, urgency));
      body = await store.open(file, name);
      if (body === undefined) throw mediaNotFound();
    }
    const { format } = variant;
    return { contentType: `image/${format}`, fileName: `thumbnail.${format}`, size: body.size, body };
  }

  /** Makes and stores a thumbnail. @returns its size in bytes */
  async #make(file: MediaFile, variant: Variant, urgency: TaskUrgency): Promise<number> {
    const { files, store, tasks, options } = this.#deps;
    await files.require(file);
    const name = nameOf(variant);
    const source = files.disk.pathOf(file.area, file.fileId);
    const task = { ...variant, source, maxPixels: Math.max(1, options.max_image_pixels) };
    await this.#try(file, urgency, variant.isAnimated, () =>
      store.store(file, name, (destination) => tasks.make({ ...task, destination }, urgency)),
    );
    await this.#deleteIfFileIsGone(file);
    const size = await store.sizeOf(file, name);
    if (size === undefined) throw mediaNotFound();
    return size;
  }

  /** Returns the properties of an image, from the cache, the disk or its bytes. @throws NoThumbnail for other content */
  async #examine(file: MediaFile, urgency: TaskUrgency): Promise<Image> {
    const { store } = this.#deps;
    const known = this.#images.get(file.fileId) ?? readImage((await store.readProperties(file)) ?? '');
    const image =
      known ?? (await this.#once(`${urgency} ${file.fileId}`, () => this.#examineNow(file, urgency)));
    this.#images.set(file.fileId, image);
    return image;
  }

  async #examineNow(file: MediaFile, urgency: TaskUrgency): Promise<Image> {
    const { files, store, tasks } = this.#deps;
    await files.require(file);
    const { disk } = files;
    const beginning = await disk.readBeginning(file.area, file.fileId, signatureLength);
    if (formatOf(beginning) === undefined) throw new NoThumbnail('The file does not begin like an image');
    const image = await this.#try(file, urgency, false, () =>
      tasks.examine(disk.pathOf(file.area, file.fileId), urgency),
    );
    await store.storeProperties(file, JSON.stringify(image));
    await this.#deleteIfFileIsGone(file);
    return image;
  }

  /** Deletes the thumbnails of a file that was deleted in the meantime. */
  async #deleteIfFileIsGone(file: MediaFile): Promise<void> {
    const { files, store } = this.#deps;
    if (await files.isDeleted(file)) await store.delete(file);
  }

  /** Runs the work once for all concurrent requests with the same key. */
  #once<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.#running.run(key, work) as Promise<T>;
  }

  /**
   * Runs the work after earlier work of the same urgency for the same file. When no thumbnail can be made of the file,
   * the work is not tried again for `failureTime`, because it may have crashed a process.
   */
  async #try<T>(
    { area, fileId }: MediaFile,
    urgency: TaskUrgency,
    isAnimated: boolean,
    work: () => Promise<T>,
  ): Promise<T> {
    const { clock, log } = this.#deps;
    const key = isAnimated ? `${fileId} animated` : fileId;
    const queue = `${urgency} ${fileId}`;
    if (this.#mutex.pending(queue) >= maxWaiting) throw new TaskFailure('busy');
    return this.#mutex.run(queue, async () => {
      if (this.#failures.has(key)) throw new NoThumbnail('An earlier attempt has failed');
      try {
        return await work();
      } catch (error) {
        if (error instanceof NoThumbnail) {
          this.#failures.set(key, clock.now());
          log.info({ area, fileId, why: error.message }, 'Failed to make a thumbnail');
        }
        throw error;
      }
    });
  }
}

/**
 * Reports whether the original can be served in place of a thumbnail: its format is not AVIF, it needs no rotation, and
 * it is animated only if the request accepts animations.
 */
function canServeOriginal(
  { format, isTurned, isAnimated }: Image,
  request: { isAnimated: boolean },
): boolean {
  return format !== 'avif' && !isTurned && (!isAnimated || request.isAnimated);
}

/**
 * Chooses the format: JPEG for photos, PNG for drawings and transparent images, WebP for animations.
 */
function variantOf({ format, hasAlpha }: Image, target: Target, isAnimated: boolean): Variant {
  const isDrawn = hasAlpha || format === 'png' || format === 'gif';
  return { target, isAnimated, format: isAnimated ? 'webp' : isDrawn ? 'png' : 'jpeg' };
}

const nameOf = ({ target: { width, height, method }, format, isAnimated }: Variant) =>
  `${width}x${height}-${method}${isAnimated ? '-animated' : ''}.${format}`;

/** Returns the error for an image with too many pixels. Source: client-server API, "Content repository", "Security considerations". */
const tooLarge = ({ area }: MediaFile) =>
  new MatrixError(area === 'local' ? 413 : 502, 'M_TOO_LARGE', 'This image is too large for a thumbnail');

/** Returns the error for the client. */
function errorOf(error: unknown): unknown {
  if (error instanceof TaskFailure && error.reason === 'busy') return limitExceeded(1_000);
  const isOfThumbnails = error instanceof NoThumbnail || error instanceof TaskFailure;
  return isOfThumbnails ? unknown('No thumbnail can be made of this content', 400) : error;
}
