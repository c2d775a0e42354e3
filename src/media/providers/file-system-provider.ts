import { copyFile, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { randomLetters, systemRandomness } from '../../kernel/randomness.ts';
import type { FileToStore, StorageProvider } from './storage-provider.ts';

/** Directory of incomplete files. */
const incoming = 'incoming';

/** Name of an incomplete file: the host and the process that write it, and random letters. */
const partName = /^(.+)\.(\d+)\.[A-Za-z]{16}\.part$/;

/** Milliseconds without a change after which an incomplete file of another host counts as left behind. */
const abandonedAfter = 24 * 3_600_000;

/** Incomplete files that this process is writing. */
const filesBeingWritten = new Set<string>();

/** Stores media in a directory, for instance of a network file system: `module: file_system`. */
export class FileSystemProvider implements StorageProvider {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = resolve(directory);
  }

  /**
   * Deletes the incomplete files of processes that have crashed. Several processes, also of other hosts, may be writing.
   * @param now milliseconds since the epoch
   */
  async sweep(now: number): Promise<void> {
    const names = await readdir(join(this.#directory, incoming)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    for (const name of names) {
      const [, host, pid] = partName.exec(name) ?? [];
      const path = join(this.#directory, incoming, name);
      if (host === undefined || filesBeingWritten.has(path)) continue;
      const isAbandoned =
        host === hostname()
          ? Number(pid) === process.pid || !isRunning(Number(pid))
          : (await modifiedAt(path)) < now - abandonedAfter;
      if (isAbandoned) await rm(path, { force: true });
    }
  }

  async store(path: string, { source }: FileToStore): Promise<void> {
    const place = join(this.#directory, path);
    const name = `${hostname()}.${process.pid}.${randomLetters(systemRandomness, 16)}.part`;
    const part = join(this.#directory, incoming, name);
    filesBeingWritten.add(part);
    try {
      await mkdir(dirname(part), { recursive: true });
      await mkdir(dirname(place), { recursive: true });
      await copyFile(source, part);
      await flush(part);
      await rename(part, place);
    } catch (error) {
      await rm(part, { force: true }).catch(() => undefined);
      throw error;
    } finally {
      filesBeingWritten.delete(part);
    }
    await flush(dirname(place));
  }

  async open(path: string): Promise<Readable | undefined> {
    try {
      return (await open(join(this.#directory, path))).createReadStream({ highWaterMark: 256 * 1024 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  async delete(path: string): Promise<void> {
    await rm(join(this.#directory, path), { force: true });
  }
}

async function flush(path: string): Promise<void> {
  const handle = await open(path);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Reports whether a process of this host is running. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Returns when a file was last changed, in milliseconds since the epoch; `Infinity` for a missing file. */
const modifiedAt = (path: string) =>
  stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => Number.POSITIVE_INFINITY,
  );
