import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileIdAt, incomingDirectory, incomingPath } from '../disk/places.ts';
import type { MediaArea } from '../media-file.ts';
import type { OpenedProvider } from './open-providers.ts';
import type { FileToStore, StorageProvider } from './storage-provider.ts';

export interface MoveProgress {
  /** Number of files that are done. */
  readonly files: number;
  readonly totalFiles: number;
  /** Bytes that were sent, because a provider did not have them yet. */
  readonly sentBytes: number;
}

export interface MoveOptions {
  /** `media_store_path`. */
  readonly directory: string;
  readonly providers: readonly OpenedProvider[];
  /** Whether the files are kept on this machine, too. */
  readonly keeps: boolean;
  readonly report: (progress: MoveProgress) => void;
}

/**
 * Stores the media of this machine at the providers, reads it back to compare its hash, and then deletes it on this
 * machine. After an interruption, the next call continues: files that a provider already has are compared, and sent
 * only if they differ. If the server deletes a file meanwhile, this call deletes the file at the providers. If this
 * process ends too early, the next start of the server deletes it there.
 * @throws Error that names the file if a provider returns other bytes; errors of providers
 */
export async function moveMedia({ directory, providers, keeps, report }: MoveOptions): Promise<MoveProgress> {
  const areas = (['local', 'remote'] as const).map((area) => ({
    area,
    providers: providers.filter((provider) =>
      area === 'local' ? provider.storesLocal : provider.storesRemote,
    ),
  }));
  const used = areas.filter((area) => area.providers.length > 0);
  const files: FileToMove[] = [];
  for (const { area, providers: providersOfArea } of used)
    for (const path of await pathsOf(directory, area)) files.push({ area, path, providers: providersOfArea });
  await mkdir(join(directory, incomingDirectory), { recursive: true });
  let sentBytes = 0;
  for (const [index, file] of files.entries()) {
    report({ files: index, totalFiles: files.length, sentBytes });
    sentBytes += await moveFile(directory, file, keeps);
  }
  const finalProgress = { files: files.length, totalFiles: files.length, sentBytes };
  report(finalProgress);
  return finalProgress;
}

interface FileToMove {
  readonly area: MediaArea;
  readonly path: string;
  readonly providers: readonly OpenedProvider[];
}

/** Moves one file. @returns the number of sent bytes @throws the errors of `moveMedia` */
async function moveFile(directory: string, file: FileToMove, keeps: boolean): Promise<number> {
  // The server is storing or deleting the file, or crashed during that work.
  if (await isInUse(directory, file)) return 0;
  const source = join(directory, file.path);
  const local = await localFile(source);
  if (local === undefined) return 0;
  const moving = markerOf(directory, file, 'moving');
  await writeFile(moving, '');
  let sentBytes = 0;
  try {
    for (const { name, provider } of file.providers) {
      if ((await hashAt(provider, file.path)) === local.sha256) continue;
      await provider.store(file.path, local);
      sentBytes += local.size;
      if ((await hashAt(provider, file.path)) !== local.sha256)
        throw new Error(`the storage provider "${name}" did not store ${file.path} unchanged`);
    }
  } catch (error) {
    // The marker of a deleted file remains, so that the next start of the server deletes it at the providers.
    if (!(await isDeleted(directory, file))) await rm(moving, { force: true });
    throw error;
  }
  if (await isDeleted(directory, file)) {
    // The server has deleted the file meanwhile. It may have deleted the file at the providers before this command
    // stored it there.
    for (const { provider } of file.providers) await provider.delete(file.path);
  } else if (!keeps) await rm(source, { force: true });
  await rm(moving, { force: true });
  return sentBytes;
}

/**
 * Returns the path of a file's marker. It exists while the server stores or deletes the file, or while this command
 * moves it.
 */
const markerOf = (directory: string, { area, path }: FileToMove, stage: 'part' | 'placed' | 'moving') =>
  incomingPath(directory, area, fileIdAt(path.slice(area.length + 1)), stage);

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );

/** Reports whether the server is storing or deleting a file. */
const isInUse = async (directory: string, file: FileToMove) =>
  (await exists(markerOf(directory, file, 'part'))) || (await exists(markerOf(directory, file, 'placed')));

/** Reports whether the server has deleted a file, or is about to. */
const isDeleted = async (directory: string, file: FileToMove) =>
  (await isInUse(directory, file)) || !(await exists(join(directory, file.path)));

/** Returns the sorted paths of all complete files of an area. */
async function pathsOf(directory: string, area: MediaArea): Promise<string[]> {
  const entries = await readdir(join(directory, area), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(directory, '/').length))
    .sort();
}

/** Returns a file with its size and hash; `undefined` when it was deleted meanwhile. */
async function localFile(source: string): Promise<FileToStore | undefined> {
  try {
    const { size } = await stat(source);
    return { source, size, sha256: await hashOf(createReadStream(source)) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Returns the SHA-256 of a file at a provider, in hexadecimal; `undefined` when the provider lacks the file. */
async function hashAt(provider: StorageProvider, path: string): Promise<string | undefined> {
  const content = await provider.open(path);
  return content && hashOf(content);
}

async function hashOf(content: Readable): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of content) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
