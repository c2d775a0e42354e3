import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { OpenFile } from '../../kernel/http/index.ts';
import { type Randomness, randomLetters } from '../../kernel/randomness.ts';
import type { MediaFile } from '../media-file.ts';
import { incomingDirectory, thumbnailsOf } from './places.ts';
import { asStorageError } from './storage-error.ts';

/** The media file that thumbnails are made of. */
type Owner = Pick<MediaFile, 'area' | 'fileId'>;

export interface ThumbnailStoreDeps {
  /** `media_store_path`, with the directories that `MediaStore` makes. */
  readonly directory: string;
  readonly randomness: Randomness;
  /** Maximum number of thumbnails per file. */
  readonly maxKept: number;
}

/** Names of incomplete files in the directory `incoming`. */
const leftover = /^[A-Za-z]{24}\.thumbnail$/;

/** Name of the file with the properties of the original image. */
const propertiesFile = 'picture.json';

/**
 * Stores thumbnails on disk. The database does not know the thumbnails, and their names describe their content, so that
 * missing thumbnails can be made again. They are deleted with their media file (`MediaStore.delete`).
 */
export class ThumbnailStore {
  readonly #directory: string;
  readonly #randomness: Randomness;
  readonly #maxKept: number;

  private constructor({ directory, randomness, maxKept }: ThumbnailStoreDeps) {
    // Absolute, since the process that writes may have another working directory.
    this.#directory = resolve(directory);
    this.#randomness = randomness;
    this.#maxKept = maxKept;
  }

  /** Opens the store, and deletes the incomplete files that a crashed process has left. */
  static async open(deps: ThumbnailStoreDeps): Promise<ThumbnailStore> {
    const { directory } = deps;
    for (const name of await readdir(join(directory, incomingDirectory))) {
      if (leftover.test(name)) await rm(join(directory, incomingDirectory, name), { force: true });
    }
    return new ThumbnailStore(deps);
  }

  /** Returns the size of a thumbnail in bytes; `undefined` when the thumbnail is missing. */
  async sizeOf(owner: Owner, name: string): Promise<number | undefined> {
    const stats = await stat(this.#path(owner, name)).catch(ignoreMissing);
    return stats?.size;
  }

  /** Opens a thumbnail; `undefined` when it is missing. */
  open(owner: Owner, name: string): Promise<OpenFile | undefined> {
    return OpenFile.open(this.#path(owner, name)).catch(ignoreMissing);
  }

  /**
   * Stores the file that `write` writes to the given path, completely or not at all, even with concurrent
   * writers.
   * @throws errors of `write`; StorageError when the disk fails
   */
  async store(owner: Owner, name: string, write: (path: string) => Promise<void>): Promise<void> {
    const part = this.#incoming();
    try {
      await write(part);
      await flush(part);
      const place = this.#path(owner, name);
      await mkdir(dirname(place), { recursive: true });
      await rename(part, place);
      await this.#deleteOldest(owner);
    } catch (error) {
      await rm(part, { force: true }).catch(() => undefined);
      throw asStorageError(error);
    }
  }

  /** Returns the stored properties of the original image; `undefined` when they are missing. */
  async readProperties(owner: Owner): Promise<string | undefined> {
    return readFile(this.#path(owner, propertiesFile), 'utf8').catch(ignoreMissing);
  }

  /** Stores the properties of the original image. */
  storeProperties(owner: Owner, text: string): Promise<void> {
    return this.store(owner, propertiesFile, (path) => writeFile(path, text));
  }

  /** Deletes all thumbnails of a file. */
  delete(owner: Owner): Promise<void> {
    return rm(this.#place(owner), { recursive: true, force: true });
  }

  /** Deletes the oldest thumbnails when there are too many. */
  async #deleteOldest(owner: Owner): Promise<void> {
    const names = (await readdir(this.#place(owner))).filter((name) => name !== propertiesFile);
    if (names.length <= this.#maxKept) return;
    const withAge = await Promise.all(
      names.map(async (name) => {
        const path = this.#path(owner, name);
        return { path, madeAt: (await stat(path).catch(ignoreMissing))?.mtimeMs ?? 0 };
      }),
    );
    const oldest = withAge.sort((a, b) => a.madeAt - b.madeAt).slice(0, names.length - this.#maxKept);
    for (const { path } of oldest) await rm(path, { force: true });
  }

  #place({ area, fileId }: Owner): string {
    return thumbnailsOf(this.#directory, area, fileId);
  }

  #path(owner: Owner, name: string): string {
    return join(this.#place(owner), name);
  }

  #incoming(): string {
    return join(this.#directory, incomingDirectory, `${randomLetters(this.#randomness, 24)}.thumbnail`);
  }
}

async function flush(path: string): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
  throw asStorageError(error);
}
