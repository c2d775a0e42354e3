import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { MediaArea } from '../media-file.ts';
import type { OpenedProvider } from './open-providers.ts';
import type { FileToStore, StorageProvider } from './storage-provider.ts';

export interface MoveProgress {
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
 * machine. After an interruption, the next call continues: files that a provider already has are compared, and sent only
 * if they differ.
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
  const files: { path: string; providers: readonly OpenedProvider[] }[] = [];
  for (const { area, providers: ofArea } of used)
    for (const path of await pathsOf(directory, area)) files.push({ path, providers: ofArea });
  let sentBytes = 0;
  for (const [index, file] of files.entries()) {
    report({ files: index, totalFiles: files.length, sentBytes });
    const source = join(directory, file.path);
    const local = await localFile(source);
    if (local === undefined) continue;
    for (const { name, provider } of file.providers) {
      if ((await hashAt(provider, file.path)) === local.sha256) continue;
      await provider.store(file.path, local);
      sentBytes += local.size;
      if ((await hashAt(provider, file.path)) !== local.sha256)
        throw new Error(`the storage provider "${name}" did not store ${file.path} unchanged`);
    }
    if (!keeps) await rm(source, { force: true });
  }
  const done = { files: files.length, totalFiles: files.length, sentBytes };
  report(done);
  return done;
}

/** Returns the sorted paths of all complete files of an area. */
async function pathsOf(directory: string, area: MediaArea): Promise<string[]> {
  const entries = await readdir(join(directory, area), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(directory, '/').length))
    .sort();
}

/** @returns `undefined` for a file that was deleted meanwhile */
async function localFile(source: string): Promise<FileToStore | undefined> {
  try {
    const { size } = await stat(source);
    return { source, size, sha256: await hashOf(createReadStream(source)) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function hashAt(provider: StorageProvider, path: string): Promise<string | undefined> {
  const content = await provider.open(path);
  return content && hashOf(content);
}

async function hashOf(content: Readable): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of content) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
