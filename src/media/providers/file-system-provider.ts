import { copyFile, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { randomLetters, systemRandomness } from '../../kernel/randomness.ts';
import type { FileToStore, StorageProvider } from './storage-provider.ts';

/** Stores media in a directory, for instance of a network file system: `module: file_system`. */
export class FileSystemProvider implements StorageProvider {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = resolve(directory);
  }

  async store(path: string, { source }: FileToStore): Promise<void> {
    const place = join(this.#directory, path);
    // The server and `hearth media move` may store the same file at the same time.
    const part = `${place}.${randomLetters(systemRandomness, 8)}.part`;
    await mkdir(dirname(place), { recursive: true });
    try {
      await copyFile(source, part);
      await flush(part);
      await rename(part, place);
    } catch (error) {
      await rm(part, { force: true }).catch(() => undefined);
      throw error;
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
