import { createHash, type Hash } from 'node:crypto';
import { link, mkdir, open as openFile, readdir, rename, rm, stat, unlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { OpenFile } from '../../kernel/http/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { type Randomness, randomLetters } from '../../kernel/randomness.ts';
import type { MediaArea, MediaFile } from '../media-file.ts';
import { incoming, parentsOf, placeOf, thumbnailsOf } from './places.ts';
import { asStorageError, StorageError } from './storage-error.ts';

/** A file that was written to disk. */
export interface StoredFile {
  readonly fileId: string;
  /** Bytes. */
  readonly size: number;
  /** In hexadecimal. */
  readonly sha256: string;
  /** The first bytes, at most `beginningLength`. */
  readonly beginning: Uint8Array;
}

/** Number of bytes that distinguish an image from other content. */
const beginningLength = 16;

export interface MediaStoreDeps {
  /** `media_store_path`. */
  readonly directory: string;
  readonly randomness: Randomness;
  readonly log: Logger;
  /** Opens files for writing; replaced in tests of a full disk. */
  readonly openFile?: typeof openFile;
}

const fileIdLength = 24;

/** Letters of a file id that name its directories, and number of files after which new directories are used. */
const [directoryLetters, filesPerDirectory] = [4, 500];
const areas: readonly MediaArea[] = ['local', 'remote'];

/**
 * Names in the directory `incoming`. `local.aBcD….part` is a file that is being written. `local.aBcD….placed` marks a
 * file at its final path whose row is about to be written or deleted.
 */
const leftover = /^(local|remote)\.([A-Za-z]{24})\.(part|placed)$/;

/**
 * Stores media files. A file has a random name, in directories of two levels, and exists completely or not at
 * all: see decision 0107.
 */
export class MediaStore {
  /** Files without rows, which were deleted at the start. */
  readonly swept: { readonly area: MediaArea; readonly fileId: string }[] = [];
  readonly #directory: string;
  readonly #randomness: Randomness;
  readonly #log: Logger;
  readonly #openFile: typeof openFile;
  #idStart = '';
  #idsLeft = 0;

  private constructor({ directory, randomness, log, openFile: given = openFile }: MediaStoreDeps) {
    this.#directory = directory;
    this.#randomness = randomness;
    this.#log = log;
    this.#openFile = given;
  }

  /**
   * Makes the directories, and deletes incomplete files of a crashed process.
   * @param isKept whether a row refers to the file
   * @throws Error when the directory cannot be used
   */
  static async open(
    deps: MediaStoreDeps,
    isKept: (area: MediaArea, fileId: string) => Promise<boolean>,
  ): Promise<MediaStore> {
    const store = new MediaStore(deps);
    for (const name of [incoming, ...areas])
      await mkdir(join(deps.directory, name), { recursive: true, mode: 0o700 });
    for (const name of await readdir(join(deps.directory, incoming))) {
      const [, area, fileId, stage] = leftover.exec(name) ?? [];
      if (area === undefined || fileId === undefined) continue;
      if (stage === 'placed' && !(await isKept(area as MediaArea, fileId))) {
        await store.delete(area as MediaArea, fileId);
        store.swept.push({ area: area as MediaArea, fileId });
      }
      await rm(join(deps.directory, incoming, name), { force: true });
    }
    return store;
  }

  /**
   * Writes a file, and keeps it once `record` has written its row. Deletes it when anything fails.
   * @throws errors of `content` and `record`; MatrixError M_UNKNOWN when the disk fails
   */
  async store<T>(
    area: MediaArea,
    content: AsyncIterable<Uint8Array>,
    record: (file: StoredFile) => Promise<T>,
  ): Promise<T> {
    const fileId = this.#newFileId();
    const [part, placed] = [this.#incoming(area, fileId, 'part'), this.#incoming(area, fileId, 'placed')];
    try {
      const written = await this.#write(part, content);
      await this.#place(area, fileId, part, placed);
      const result = await record({ fileId, ...written });
      await unlink(placed).catch(() => undefined);
      return result;
    } catch (error) {
      // In this order: a marker that remains is checked again at the next start.
      await rm(part, { force: true }).catch(() => undefined);
      await this.delete(area, fileId).then(
        () => rm(placed, { force: true }),
        () => undefined,
      );
      if (error instanceof StorageError)
        this.#log.error({ err: error.cause }, 'Failed to store a media file');
      throw error;
    }
  }

  /** Returns the bytes of a file; `undefined` when it is missing. */
  async sizeOf(area: MediaArea, fileId: string): Promise<number | undefined> {
    try {
      return (await stat(this.#path(area, fileId))).size;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw asStorageError(error);
    }
  }

  /** Returns the absolute path of a file, for a process that reads it. */
  pathOf(area: MediaArea, fileId: string): string {
    return resolve(this.#path(area, fileId));
  }

  /** @param length bytes; fewer are returned when the file is shorter, and none when it is missing */
  async readBeginning(area: MediaArea, fileId: string, length: number): Promise<Uint8Array> {
    const handle = await openFile(this.#path(area, fileId), 'r').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw asStorageError(error);
    });
    if (handle === undefined) return new Uint8Array();
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, 0);
      return buffer.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  }

  /** Opens a file; `undefined` when it is missing. */
  async open(area: MediaArea, fileId: string): Promise<OpenFile | undefined> {
    try {
      return await OpenFile.open(this.#path(area, fileId));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw asStorageError(error);
    }
  }

  /**
   * Yields the bytes of a file that is missing on the disk, and restores the file. The last bytes are yielded only
   * after size and hash were checked; a file with another size or hash is not restored.
   * @throws StorageError when size or hash differ from those of the stored file
   */
  async *restoring(file: MediaFile, content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const part = this.#incoming(file.area, randomLetters(this.#randomness, fileIdLength), 'part');
    const handle = await this.#openFile(part, 'wx', 0o640).catch((error: unknown) => {
      throw asStorageError(error);
    });
    const hash = createHash('sha256');
    let [size, held] = [0, new Uint8Array()];
    try {
      for await (const chunk of content) {
        if (held.length > 0) yield held;
        hash.update(chunk);
        await writeChunk(handle, chunk);
        size += chunk.length;
        held = new Uint8Array(chunk);
      }
      if (size !== file.size || hash.digest('hex') !== file.sha256) {
        const cause = new Error(`a storage provider returned wrong bytes for the file ${file.fileId}`);
        this.#log.error({ err: cause }, 'A storage provider returned wrong bytes');
        throw new StorageError(502, 'The storage of this file is damaged', cause);
      }
      await handle.sync();
      await mkdir(this.#parents(file.area, file.fileId)[1], { recursive: true });
      await rename(part, this.#path(file.area, file.fileId));
    } finally {
      await handle.close();
      await rm(part, { force: true });
    }
    if (held.length > 0) yield held;
  }

  /** Deletes a file with its thumbnails. */
  async delete(area: MediaArea, fileId: string): Promise<void> {
    await rm(this.#path(area, fileId), { force: true });
    await rm(thumbnailsOf(this.#directory, area, fileId), { recursive: true, force: true });
  }

  /**
   * Deletes files with their rows. If the process ends in between, the next start deletes the files whose rows are
   * deleted.
   * @param deleteRows returns the ids of the files whose rows it has deleted
   * @throws errors of `deleteRows`
   */
  async deleteWithRows(
    area: MediaArea,
    fileIds: readonly string[],
    deleteRows: () => Promise<readonly string[]>,
  ): Promise<void> {
    for (const fileId of fileIds) await (await openFile(this.#incoming(area, fileId, 'placed'), 'a')).close();
    if (fileIds.length > 0) await syncDirectory(join(this.#directory, incoming));
    for (const fileId of await deleteRows()) await this.delete(area, fileId);
    for (const fileId of fileIds) await rm(this.#incoming(area, fileId, 'placed'), { force: true });
  }

  async #write(path: string, content: AsyncIterable<Uint8Array>): Promise<Omit<StoredFile, 'fileId'>> {
    const handle = await this.#openFile(path, 'wx', 0o640).catch((error: unknown) => {
      throw asStorageError(error);
    });
    const hash = createHash('sha256');
    try {
      const { size, beginning } = await writeAll(handle, content, hash);
      await handle.sync().catch((error: unknown) => {
        throw asStorageError(error);
      });
      return { size, sha256: hash.digest('hex'), beginning };
    } finally {
      await handle.close();
    }
  }

  async #place(area: MediaArea, fileId: string, part: string, placed: string): Promise<void> {
    try {
      await this.#mark(part, placed);
      const [place, [, second]] = [this.#path(area, fileId), this.#parents(area, fileId)];
      await rename(part, place).catch(async (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
        await this.#makeParents(area, fileId);
        await rename(part, place);
      });
      await syncDirectory(second);
    } catch (error) {
      throw asStorageError(error);
    }
  }

  /** Makes the marker of a file: a hard link, which takes fewer system calls than a new file. */
  async #mark(part: string, placed: string): Promise<void> {
    await link(part, placed).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOSPC') throw error;
      // The file system does not support hard links.
      await (await openFile(placed, 'wx')).close();
    });
  }

  async #makeParents(area: MediaArea, fileId: string): Promise<void> {
    const [first, second] = this.#parents(area, fileId);
    await mkdir(second, { recursive: true });
    for (const directory of [first, join(this.#directory, area)]) await syncDirectory(directory);
  }

  /** Returns a random id. Files that are stored one after the other share a directory, so that it is made only once. */
  #newFileId(): string {
    if (this.#idsLeft-- <= 0) {
      this.#idsLeft = filesPerDirectory - 1;
      this.#idStart = randomLetters(this.#randomness, directoryLetters);
    }
    return this.#idStart + randomLetters(this.#randomness, fileIdLength - directoryLetters);
  }

  #parents(area: MediaArea, fileId: string): readonly [string, string] {
    const [first, second] = parentsOf(fileId);
    return [join(this.#directory, area, first), join(this.#directory, area, second)];
  }

  #path(area: MediaArea, fileId: string): string {
    return join(this.#directory, area, placeOf(fileId));
  }

  #incoming(area: MediaArea, fileId: string, stage: 'part' | 'placed'): string {
    return join(this.#directory, incoming, `${area}.${fileId}.${stage}`);
  }
}

type FileHandle = Awaited<ReturnType<typeof openFile>>;

/** Writes all chunks, and frees their memory: the caller must not use them afterwards. */
async function writeAll(
  handle: FileHandle,
  content: AsyncIterable<Uint8Array>,
  hash: Hash,
): Promise<{ readonly size: number; readonly beginning: Uint8Array }> {
  let size = 0;
  let beginning = Buffer.alloc(0);
  let batch: Uint8Array[] = [];
  let batched = 0;
  const flush = async () => {
    const chunks = batch;
    [batch, batched] = [[], 0];
    await writeChunks(handle, chunks);
    for (const chunk of chunks) release(chunk);
  };
  for await (const chunk of content) {
    hash.update(chunk);
    if (size < beginningLength)
      beginning = Buffer.concat([beginning, chunk.subarray(0, beginningLength - size)]);
    size += chunk.length;
    batch.push(chunk);
    batched += chunk.length;
    if (batched >= batchBytes) await flush();
  }
  await flush();
  return { size, beginning };
}

/** Number of bytes that are collected before they are written. */
const batchBytes = 512 * 1024;

/** Frees the memory of a written chunk that has its own buffer, so that the garbage collector runs less often. */
function release({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && byteLength > 0) buffer.transfer(0);
}

async function writeChunks(handle: FileHandle, chunks: readonly Uint8Array[]): Promise<void> {
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  if (length === 0) return;
  const { bytesWritten } = await handle.writev(chunks).catch((error: unknown) => {
    throw asStorageError(error);
  });
  if (bytesWritten < length) await writeChunk(handle, Buffer.concat(chunks).subarray(bytesWritten));
}

async function writeChunk(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let rest = chunk; rest.length > 0; ) {
    const { bytesWritten } = await handle.write(rest).catch((error: unknown) => {
      throw asStorageError(error);
    });
    rest = rest.subarray(bytesWritten);
  }
}

/** A new name is durable only after its directory is synced. */
async function syncDirectory(path: string): Promise<void> {
  const handle = await openFile(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
