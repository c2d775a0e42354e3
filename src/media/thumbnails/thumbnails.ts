import { RecentlyUsed } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { TaskFailure } from '../../kernel/task-processes/index.ts';
import { limitExceeded, MatrixError, unknown } from '../../protocol/index.ts';
import type { MediaStore } from '../disk/media-store.ts';
import { StorageError } from '../disk/storage-error.ts';
import type { ThumbnailStore } from '../disk/thumbnail-store.ts';
import { noMedia } from '../media-address.ts';
import type { MediaFile } from '../media-file.ts';
import { type Content, contentOf } from '../serving/serve-content.ts';
import { chooseTarget, isWhole, type Target, type ThumbnailOptions, targetOf } from './choose.ts';
import { formatOf, type Picture, readPicture, signatureLength } from './picture.ts';
import type { ThumbnailFormat } from './picture-task.ts';
import { NoThumbnail, type PictureTasks, type Urgency } from './picture-tasks.ts';
import { areaOf, type ThumbnailSize } from './sizes.ts';

export interface ThumbnailsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly disk: MediaStore;
  readonly store: ThumbnailStore;
  readonly tasks: PictureTasks;
  readonly options: ThumbnailOptions & {
    /** Width times height. */
    readonly max_image_pixels: number;
  };
}

/** What a request asks for. */
export interface AskedThumbnail extends ThumbnailSize {
  /** Whether it may move, and should if it can. */
  readonly isAnimated: boolean;
}

/** What is made: a target, in a format. */
interface Variant {
  readonly target: Target;
  readonly format: ThumbnailFormat;
  readonly isAnimated: boolean;
}

/** Pictures of which is remembered what they are, and thumbnails that could not be made. */
const [maxPictures, maxFailures] = [5_000, 5_000];

/** Thumbnails of one file that are asked for at the same time. */
const maxWaiting = 50;

/** Milliseconds for which what has failed is not tried again. */
const failureTime = 10 * 60_000;

/** Frames of an animation, beside `max_image_pixels` for all together. */
const maxFrames = 1_000;

/** Thumbnails of files. Source: client-server API, "Content repository", "Thumbnails". */
export class Thumbnails {
  readonly #deps: ThumbnailsDeps;
  readonly #pictures = new RecentlyUsed<string, Picture>({ max: maxPictures });
  /** When they failed, by file, and whether it was to move. */
  readonly #failures = new RecentlyUsed<string, number>({ max: maxFailures });
  readonly #running = new LoadOnce<string, unknown>();
  /** One file occupies one process at most, however many sizes of it are asked for; another beforehand. */
  readonly #mutex = new KeyedMutex();

  constructor(deps: ThumbnailsDeps) {
    this.#deps = deps;
  }

  /**
   * A thumbnail of a file, which is made if it is not there, or the file itself where that is a small enough picture.
   * @throws MatrixError M_NOT_FOUND when the file is gone; M_TOO_LARGE (413; 502 for media of others); M_UNKNOWN (400)
   * when the file is no picture that can be read; M_LIMIT_EXCEEDED when too many wait
   */
  async find(file: MediaFile, asked: AskedThumbnail): Promise<Content> {
    const { disk, options } = this.#deps;
    const whole = await contentOf(disk, file);
    try {
      const picture = await this.#examine(file, 'urgent');
      if (areaOf(picture) > options.max_image_pixels) throw tooLarge(file);
      const target = chooseTarget(picture, asked, options);
      if (target === undefined && servesAsItIs(picture, asked)) {
        return { ...whole, contentType: `image/${picture.format}`, fileName: `thumbnail.${picture.format}` };
      }
      const wanted = target ?? targetOf(picture, { ...picture, method: 'scale' });
      return await this.#findVariant(file, picture, wanted, asked.isAnimated);
    } catch (error) {
      if (error instanceof StorageError)
        this.#deps.log.error({ err: error.cause }, 'A thumbnail was not stored');
      throw errorOf(error);
    }
  }

  /** Makes the thumbnails of the list, when there is time. Never fails: what is missing is made when it is asked for. */
  async prepare(file: MediaFile): Promise<void> {
    const { options, log } = this.#deps;
    try {
      const picture = await this.#examine(file, 'background');
      if (areaOf(picture) > options.max_image_pixels) return;
      for (const size of options.thumbnail_sizes) {
        const target = targetOf(picture, size);
        if (isWhole(picture, target) && servesAsItIs(picture, { isAnimated: false })) continue;
        await this.#provide(file, variantOf(picture, target, false), 'background');
      }
    } catch (error) {
      if (!(error instanceof NoThumbnail)) log.debug({ err: error }, 'Thumbnails were not made beforehand');
    }
  }

  /** Gives up what is being made. */
  stop(): void {
    this.#deps.tasks.stop();
  }

  async #findVariant(file: MediaFile, picture: Picture, target: Target, moves: boolean): Promise<Content> {
    const { options } = this.#deps;
    const pixels = areaOf(picture) * picture.frames;
    const canMove = picture.frames > 1 && picture.frames <= maxFrames && pixels <= options.max_image_pixels;
    if (moves && canMove) {
      try {
        return await this.#provide(file, variantOf(picture, target, true), 'urgent');
      } catch (error) {
        // As one that stands still, perhaps.
        if (!(error instanceof NoThumbnail)) throw error;
      }
    }
    return this.#provide(file, variantOf(picture, target, false), 'urgent');
  }

  async #provide(file: MediaFile, variant: Variant, urgency: Urgency): Promise<Content> {
    const { store } = this.#deps;
    const name = nameOf(variant);
    const size =
      (await store.sizeOf(file, name)) ??
      (await this.#once(`${urgency} ${file.fileId}/${name}`, () => this.#make(file, variant, urgency)));
    return {
      contentType: `image/${variant.format}`,
      fileName: `thumbnail.${variant.format}`,
      size,
      read: () => store.read(file, name),
    };
  }

  /** @returns its size in bytes */
  async #make(file: MediaFile, variant: Variant, urgency: Urgency): Promise<number> {
    const { disk, store, tasks, options } = this.#deps;
    const name = nameOf(variant);
    const source = disk.pathOf(file.area, file.fileId);
    const task = { ...variant, source, maxPixels: Math.max(1, options.max_image_pixels) };
    await this.#try(file, urgency, variant.isAnimated, () =>
      store.keep(file, name, (destination) => tasks.make({ ...task, destination }, urgency)),
    );
    await this.#forgetIfGone(file);
    const size = await store.sizeOf(file, name);
    if (size === undefined) throw noMedia();
    return size;
  }

  /** @throws NoThumbnail for what is no picture */
  async #examine(file: MediaFile, urgency: Urgency): Promise<Picture> {
    const { store } = this.#deps;
    const known = this.#pictures.get(file.fileId) ?? readPicture((await store.readFacts(file)) ?? '');
    const picture =
      known ?? (await this.#once(`${urgency} ${file.fileId}`, () => this.#examineNow(file, urgency)));
    this.#pictures.set(file.fileId, picture);
    return picture;
  }

  async #examineNow(file: MediaFile, urgency: Urgency): Promise<Picture> {
    const { disk, store, tasks } = this.#deps;
    const beginning = await disk.readBeginning(file.area, file.fileId, signatureLength);
    if (formatOf(beginning) === undefined) throw new NoThumbnail('It does not begin like a picture');
    const picture = await this.#try(file, urgency, false, () =>
      tasks.examine(disk.pathOf(file.area, file.fileId), urgency),
    );
    await store.keepFacts(file, JSON.stringify(picture));
    await this.#forgetIfGone(file);
    return picture;
  }

  /** The file was deleted meanwhile: its thumbnails must not stay. */
  async #forgetIfGone(file: MediaFile): Promise<void> {
    const { disk, store } = this.#deps;
    if ((await disk.sizeOf(file.area, file.fileId)) === undefined) await store.delete(file);
  }

  /** Requests for the same thumbnail at the same time share the work. */
  #once<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.#running.run(key, work) as Promise<T>;
  }

  /** In its turn, and not again for a while when it has failed: that may have cost a process. */
  async #try<T>(
    { area, fileId }: MediaFile,
    urgency: Urgency,
    isAnimated: boolean,
    work: () => Promise<T>,
  ): Promise<T> {
    const { clock, log } = this.#deps;
    const key = isAnimated ? `${fileId} animated` : fileId;
    const queue = `${urgency} ${fileId}`;
    if (this.#mutex.pending(queue) >= maxWaiting) throw new TaskFailure('busy');
    return this.#mutex.run(queue, async () => {
      const failedAt = this.#failures.get(key);
      if (failedAt !== undefined && clock.now() - failedAt < failureTime) {
        throw new NoThumbnail('It could not be made a while ago');
      }
      try {
        return await work();
      } catch (error) {
        if (error instanceof NoThumbnail) {
          this.#failures.set(key, clock.now());
          log.info({ area, fileId, why: error.message }, 'A thumbnail could not be made');
        }
        throw error;
      }
    });
  }
}

/** Where nothing has to be made smaller, turned or held still. */
function servesAsItIs({ format, isTurned, isAnimated }: Picture, asked: { isAnimated: boolean }): boolean {
  return format !== 'avif' && !isTurned && (!isAnimated || asked.isAnimated);
}

/** Photographs stay photographs; what may be drawn, or transparent, loses nothing; what moves is small. */
function variantOf({ format, hasAlpha }: Picture, target: Target, isAnimated: boolean): Variant {
  const isDrawn = hasAlpha || format === 'png' || format === 'gif';
  return { target, isAnimated, format: isAnimated ? 'webp' : isDrawn ? 'png' : 'jpeg' };
}

const nameOf = ({ target: { width, height, method }, format, isAnimated }: Variant) =>
  `${width}x${height}-${method}${isAnimated ? '-animated' : ''}.${format}`;

/** Source: client-server API, "Content repository", "Security considerations". */
const tooLarge = ({ area }: MediaFile) =>
  new MatrixError(area === 'local' ? 413 : 502, 'M_TOO_LARGE', 'This picture is too large for a thumbnail');

/** What a client is told. */
function errorOf(error: unknown): unknown {
  if (error instanceof TaskFailure && error.reason === 'busy') return limitExceeded(1_000);
  const isOfThumbnails = error instanceof NoThumbnail || error instanceof TaskFailure;
  return isOfThumbnails ? unknown('There can be no thumbnail of this content', 400) : error;
}
