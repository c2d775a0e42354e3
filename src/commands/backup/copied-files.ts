import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, mkdir, open, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CommandFailure } from '../failure.ts';
import type { BackupFile } from './manifest.ts';

/** Maximum bytes that are read at once. */
const chunkBytes = 256 * 1024;

/** Copies a file that must not exist yet, flushes it, and returns its size and hash. */
export async function copyFile(
  source: string,
  target: string,
  mode = 0o600,
): Promise<Omit<BackupFile, 'path'>> {
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  const written = await open(target, 'wx', mode);
  const hash = createHash('sha256');
  let size = 0;
  try {
    for await (const chunk of createReadStream(source, { highWaterMark: chunkBytes })) {
      hash.update(chunk);
      await written.writeFile(chunk);
      size += chunk.length;
    }
    await written.sync();
  } finally {
    await written.close();
  }
  // The mode given to `open` is reduced by the mask of the process.
  await chmod(target, mode);
  return { size, sha256: hash.digest('hex') };
}

/** Reads a whole file and returns its size and hash. */
export async function hashFile(file: string): Promise<Omit<BackupFile, 'path'>> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of createReadStream(file, { highWaterMark: chunkBytes })) {
    hash.update(chunk);
    size += chunk.length;
  }
  return { size, sha256: hash.digest('hex') };
}

/**
 * Compares files with their recorded sizes and hashes.
 * @throws CommandFailure that names the first file that is missing, cannot be read or differs
 */
export async function checkFiles(directory: string, files: readonly BackupFile[]): Promise<void> {
  for (const { path, size, sha256 } of files) {
    const found = await hashFile(join(directory, path)).catch((error: Error) => error);
    if (found instanceof Error)
      throw new CommandFailure(`a file of the backup is missing or cannot be read: ${found.message}`);
    if (found.size !== size || found.sha256 !== sha256) {
      throw new CommandFailure(
        `the backup is damaged: ${join(directory, path)} has changed since the backup was made`,
      );
    }
  }
}

/**
 * Returns the paths of all files below a directory, relative to the directory; none when the directory does not exist.
 * @param below path of the subdirectory to read, relative to `directory`; empty for all
 */
export async function filesBelow(directory: string, below = ''): Promise<string[]> {
  const entries = await readdir(join(directory, below), { withFileTypes: true }).catch((error) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const paths: string[] = [];
  for (const entry of entries) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) paths.push(...(await filesBelow(directory, path)));
    else if (entry.isFile()) paths.push(path);
  }
  return paths;
}
