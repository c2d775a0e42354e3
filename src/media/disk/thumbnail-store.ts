import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { type Randomness, randomLetters } from '../../kernel/randomness.ts';
import type { MediaFile } from '../media-file.ts';
import { incoming, thumbnailsOf } from './places.ts';
import { asStorageError } from './storage-error.ts';

type Owner = Pick<MediaFile, 'area' | 'fileId'>;

export interface ThumbnailStoreDeps {
  /** `media_store_path`, with what `MediaStore` makes there. */
  readonly directory: string;
  readonly randomness: Randomness;
  /** Thumbnails of one file: those of the list, and what clients have asked for lately. */
  readonly maxKept: number;
}

/** What is being written. */
const leftover = /^[A-Za-z]{24}\.thumbnail$/;

/** What is known of the picture itself. */
const facts = 'picture.json';

/**
 * Thumbnails on disk, which can be made again whenever they are missing: no row names them, and a name says what is in
 * it. They are deleted with the file that they show (`MediaStore.delete`).
 */
export class ThumbnailStore {
  readonly #directory: string;
  readonly #randomness: Randomness;
  readonly #maxKept: number;

  private constructor({ directory, randomness, maxKept }: ThumbnailStoreDeps) {
    // The process that writes has another working directory, perhaps.
    this.#directory = resolve(directory);
    this.#randomness = randomness;
    this.#maxKept = maxKept;
  }

  /** Clears out what a crash has left behind. */
  static async open(deps: ThumbnailStoreDeps): Promise<ThumbnailStore> {
    const { directory } = deps;
    for (const name of await readdir(join(directory, incoming))) {
      if (leftover.test(name)) await rm(join(directory, incoming, name), { force: true });
    }
    return new ThumbnailStore(deps);
  }

  /** Bytes of a thumbnail; `undefined` when it is not there. */
  async sizeOf(owner: Owner, name: string): Promise<number | undefined> {
    const found = await stat(this.#path(owner, name)).catch(ignoreMissing);
    return found?.size;
  }

  /** It is opened when somebody begins to read. */
  read(owner: Owner, name: string): Readable {
    const path = this.#path(owner, name);
    async function* content(): AsyncGenerator<Buffer> {
      const handle = await open(path);
      yield* handle.createReadStream({ highWaterMark: 256 * 1024 });
    }
    return Readable.from(content(), { objectMode: false });
  }

  /**
   * Keeps what `write` writes to a path that it is given: as a whole or not at all, also when several do.
   * @throws what `write` throws
   */
  async keep(owner: Owner, name: string, write: (path: string) => Promise<void>): Promise<void> {
    const part = this.#incoming();
    try {
      await write(part);
      await flush(part);
      const place = this.#path(owner, name);
      await mkdir(dirname(place), { recursive: true });
      await rename(part, place);
      await this.#makeRoom(owner);
    } catch (error) {
      await rm(part, { force: true }).catch(() => undefined);
      throw asStorageError(error);
    }
  }

  async readFacts(owner: Owner): Promise<string | undefined> {
    return readFile(this.#path(owner, facts), 'utf8').catch(ignoreMissing);
  }

  keepFacts(owner: Owner, text: string): Promise<void> {
    return this.keep(owner, facts, (path) => writeFile(path, text));
  }

  /** All thumbnails of a file. */
  delete(owner: Owner): Promise<void> {
    return rm(this.#place(owner), { recursive: true, force: true });
  }

  /** The oldest go, when there are too many. */
  async #makeRoom(owner: Owner): Promise<void> {
    const names = (await readdir(this.#place(owner))).filter((name) => name !== facts);
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
    return join(this.#directory, incoming, `${randomLetters(this.#randomness, 24)}.thumbnail`);
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
