import { createHash } from 'node:crypto';
import { link, mkdir, open as openFile, readdir, rename, rm, stat, unlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { OpenFile } from '../../kernel/http/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { type Randomness, randomLetters } from '../../kernel/randomness.ts';
import type { MediaArea, MediaFile } from '../media-file.ts';
import { DirectoryFlushes, flushDirectory } from './flush-directory.ts';
import { incomingDirectory, incomingPath, parentsOf, placeOf, thumbnailsOf } from './places.ts';
import { asStorageError, StorageError } from './storage-error.ts';
import { type WrittenFile, writeChunk, writeNewFile } from './write-file.ts';

/** A file that was written to disk. */
export interface StoredFile extends WrittenFile {
  readonly fileId: string;
}

export interface MediaStoreDeps {
  /** `media_store_path`. */
  readonly directory: string;
  readonly randomness: Randomness;
  readonly log: Logger;
  /** Opens files for writing; replaced in tests of a full disk. */
  readonly openFile?: typeof openFile;
}

/** Reports whether a row refers to a file. */
export type IsKept = (area: MediaArea, fileId: string) => Promise<boolean>;

const fileIdLength = 24;

/** Number of letters of a file id that name its directories. */
const directoryLetters = 4;

/** Number of files after which new directories are used. */
const filesPerDirectory = 500;

const areas: readonly MediaArea[] = ['local', 'remote'];

/**
 * Names in the directory `incoming`:
 * - `local.aBcD….part` is a file that is being written. When it is complete, it is also linked at its final path, and stays
 *   until its row is written.
 * - `local.aBcD….placed` marks a file at its final path whose row is about to be deleted. On a file system without hard
 *   links, it also marks a complete file whose row is about to be written.
 * - `local.aBcD….moving` marks a file that is being moved to storage providers.
 */
const leftover = /^(local|remote)\.([A-Za-z]{24})\.(part|placed|moving)$/;

/**
 * Stores media files. A file has a random name, in directories of two levels, and exists completely or not at
 * all: see decision 0107.
 */
export class MediaStore {
  /** Files without rows that were deleted at the start. Storage providers may still have them. */
  readonly swept: { readonly area: MediaArea; readonly fileId: string }[] = [];
  readonly #directory: string;
  readonly #randomness: Randomness;
  readonly #log: Logger;
  readonly #openFile: typeof openFile;
  readonly #isKept: IsKept;
  readonly #directoryFlushes = new DirectoryFlushes();
  #idStart = '';
  #idsLeft = 0;

  private constructor(
    { directory, randomness, log, openFile: openForWriting = openFile }: MediaStoreDeps,
    isKept: IsKept,
  ) {
    this.#directory = directory;
    this.#randomness = randomness;
    this.#log = log;
    this.#openFile = openForWriting;
    this.#isKept = isKept;
  }

  /**
   * Makes the directories, and deletes the incomplete files and the files without rows that a crashed process left.
   * @param isKept whether a row refers to the file
   * @throws Error when the directory cannot be used
   */
  static async open(deps: MediaStoreDeps, isKept: IsKept): Promise<MediaStore> {
    const store = new MediaStore(deps, isKept);
    for (const name of [incomingDirectory, ...areas])
      await mkdir(join(deps.directory, name), { recursive: true, mode: 0o700 });
    for (const name of await readdir(join(deps.directory, incomingDirectory))) {
      const [, area, fileId, stage] = leftover.exec(name) ?? [];
      if (area === undefined || fileId === undefined) continue;
      const isComplete = stage !== 'part' || (await store.sizeOf(area as MediaArea, fileId)) !== undefined;
      if (isComplete && !(await isKept(area as MediaArea, fileId))) {
        await store.delete(area as MediaArea, fileId);
        store.swept.push({ area: area as MediaArea, fileId });
      }
      await rm(join(deps.directory, incomingDirectory, name), { force: true });
    }
    return store;
  }

  /**
   * Writes a file, and keeps it once `record` has written its row. Deletes the file when anything fails, unless the row
   * may exist: when the connection to the database is lost, `record` may fail after it has written the row. The next
   * start of the server then deletes the file if it has no row.
   * @throws errors of `content` and `record`; MatrixError M_UNKNOWN when the disk fails
   */
  async store<T>(
    area: MediaArea,
    content: AsyncIterable<Uint8Array>,
    record: (file: StoredFile) => Promise<T>,
  ): Promise<T> {
    const fileId = this.#newFileId();
    const part = this.#incoming(area, fileId, 'part');
    let marker = part;
    let isRecording = false;
    try {
      const written = await writeNewFile(this.#openFile, part, content, async () => {
        marker = await this.#linkOrRename(area, fileId, part);
      });
      await this.#directoryFlushes.flush(this.#parents(area, fileId)[1]).catch((error: unknown) => {
        throw asStorageError(error);
      });
      isRecording = true;
      const result = await record({ fileId, ...written });
      await unlink(marker).catch(() => undefined);
      return result;
    } catch (error) {
      if (isRecording && (await this.mayHaveRow(area, fileId))) throw error;
      // Removed in this order: a marker that remains is checked again at the next start.
      const markers = [part, this.#incoming(area, fileId, 'placed')];
      await this.delete(area, fileId).then(
        () => Promise.all(markers.map((path) => rm(path, { force: true }))),
        () => undefined,
      );
      if (error instanceof StorageError)
        this.#log.error({ err: error.cause }, 'Failed to store a media file');
      throw error;
    }
  }

  /** Reports whether a row refers to a file; true when the database does not answer. */
  mayHaveRow(area: MediaArea, fileId: string): Promise<boolean> {
    return this.#isKept(area, fileId).catch(() => true);
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

  /**
   * Reads the first bytes of a file.
   * @param length number of bytes; fewer are returned when the file is shorter, and none when it is missing
   */
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

  /** Reads a file. @throws StorageError when it is missing, or the disk fails */
  async *read(area: MediaArea, fileId: string): AsyncGenerator<Uint8Array> {
    const handle = await openFile(this.#path(area, fileId), 'r').catch((error: unknown) => {
      throw asStorageError(error);
    });
    yield* handle.createReadStream() as AsyncIterable<Uint8Array>;
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
   * after size and hash were checked; a file with another size or hash is not restored. When the disk fails, the bytes
   * are yielded nevertheless.
   * @param isNeeded whether the caller needs the file on the disk
   * @throws StorageError when size or hash differ from the size and hash of the stored file, and, if `isNeeded`, when
   * the disk fails
   */
  async *restoring(
    file: MediaFile,
    content: AsyncIterable<Uint8Array>,
    isNeeded = false,
  ): AsyncGenerator<Uint8Array> {
    const part = this.#incoming(file.area, randomLetters(this.#randomness, fileIdLength), 'part');
    let handle: FileHandle | undefined;
    /** Runs a step that writes to the disk; after a failed step, further steps do nothing. */
    const writing = async (step: () => Promise<unknown>) => {
      try {
        await step();
      } catch (error) {
        if (isNeeded) throw asStorageError(error);
        this.#log.error(
          { err: error },
          'A media file that was fetched again could not be stored; it is served nevertheless',
        );
        await handle?.close().catch(() => undefined);
        handle = undefined;
      }
    };
    const hash = createHash('sha256');
    let size = 0;
    let heldBack = new Uint8Array();
    try {
      await writing(async () => {
        handle = await this.#openFile(part, 'wx', 0o640);
      });
      for await (const chunk of content) {
        if (heldBack.length > 0) yield heldBack;
        hash.update(chunk);
        const open = handle;
        if (open !== undefined) await writing(() => writeChunk(open, chunk));
        size += chunk.length;
        heldBack = new Uint8Array(chunk);
      }
      if (size !== file.size || hash.digest('hex') !== file.sha256) {
        const cause = new Error(`a storage provider returned wrong bytes for the file ${file.fileId}`);
        this.#log.error({ err: cause }, 'A storage provider returned wrong bytes');
        throw new StorageError(502, 'The storage of this file is damaged', cause);
      }
      const written = handle;
      if (written !== undefined) {
        await writing(async () => {
          await written.sync();
          await mkdir(this.#parents(file.area, file.fileId)[1], { recursive: true });
          await rename(part, this.#path(file.area, file.fileId));
        });
        // The file may have been deleted while it was read.
        if (!(await this.mayHaveRow(file.area, file.fileId))) await this.delete(file.area, file.fileId);
      }
    } finally {
      await handle?.close();
      await rm(part, { force: true });
    }
    if (heldBack.length > 0) yield heldBack;
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
    if (fileIds.length > 0) await flushDirectory(join(this.#directory, incomingDirectory));
    for (const fileId of await deleteRows()) await this.delete(area, fileId);
    for (const fileId of fileIds) await rm(this.#incoming(area, fileId, 'placed'), { force: true });
  }

  /** Moves a written file to its final path. @returns the path of the marker that remains until the row is written */
  async #linkOrRename(area: MediaArea, fileId: string, part: string): Promise<string> {
    const finalPath = this.#path(area, fileId);
    try {
      // The file in `incoming` stays as the marker: a link takes fewer system calls than a file for the marker and a rename.
      await this.#withParents(area, fileId, () => link(part, finalPath));
      return part;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' || code === 'ENOSPC') throw error;
      // The file system does not support hard links.
      const placed = this.#incoming(area, fileId, 'placed');
      await (await openFile(placed, 'wx')).close();
      await this.#withParents(area, fileId, () => rename(part, finalPath));
      return placed;
    }
  }

  /** Runs a step. When it fails because the directories of the file are missing, makes them and runs the step again. */
  async #withParents(area: MediaArea, fileId: string, step: () => Promise<void>): Promise<void> {
    await step().catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      await this.#makeParents(area, fileId);
      await step();
    });
  }

  async #makeParents(area: MediaArea, fileId: string): Promise<void> {
    const [first, second] = this.#parents(area, fileId);
    await mkdir(second, { recursive: true });
    for (const directory of [first, join(this.#directory, area)]) await flushDirectory(directory);
  }

  /** Returns a random id. Files that are stored one after the other share a directory, so that it is made only once. */
  #newFileId(): string {
    if (this.#idsLeft-- <= 0) {
      this.#idsLeft = filesPerDirectory - 1;
      this.#idStart = randomLetters(this.#randomness, directoryLetters);
    }
    return this.#idStart + randomLetters(this.#randomness, fileIdLength - directoryLetters);
  }

  #parents(area: MediaArea, fileId: string): readonly [first: string, second: string] {
    const [first, second] = parentsOf(fileId);
    return [join(this.#directory, area, first), join(this.#directory, area, second)];
  }

  #path(area: MediaArea, fileId: string): string {
    return join(this.#directory, area, placeOf(fileId));
  }

  #incoming(area: MediaArea, fileId: string, stage: 'part' | 'placed'): string {
    return incomingPath(this.#directory, area, fileId, stage);
  }
}

type FileHandle = Awaited<ReturnType<typeof openFile>>;
