import { existsSync, mkdirSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { StorageProvider } from '../../../media/index.ts';
import { CommandFailure } from '../../failure.ts';
import { hashFile } from '../copied-files.ts';
import { hasManifest, readManifest, writeManifest } from '../manifest.ts';
import { readPiece } from './piece-writer.ts';
import { readBackup, readIndex, type StoredFile } from './stored-backup.ts';

/**
 * Fetches a backup from a store into a directory. The directory then has the same files as after
 * `hearth backup DIRECTORY`. Files that an interrupted call has fetched are kept.
 * @param name of the backup; by default the newest
 * @throws CommandFailure when the store does not have the backup or the backup is damaged, or when the directory has
 * another backup
 */
export async function fetchBackup(
  provider: StorageProvider,
  directory: string,
  name: string | undefined,
): Promise<void> {
  const { backups } = await readIndex(provider);
  const names = backups.map((backup) => backup.name);
  const backupName = name ?? names.at(-1);
  if (backupName === undefined || !names.includes(backupName))
    throw new CommandFailure(
      names.length === 0
        ? 'the store has no backups'
        : `the store has no backup ${backupName}; it has ${names.join(', ')}`,
    );
  const { manifest, files } = await readBackup(provider, backupName);
  const stray = files.find(({ path }) => path.startsWith('/') || path.split('/').includes('..'));
  if (stray) throw new CommandFailure(`the backup ${backupName} names a file outside of the backup`);
  if (hasManifest(directory)) {
    if (readManifest(directory).createdTs === manifest.createdTs) return;
    throw new CommandFailure(`${directory} has another backup: give another directory`);
  }
  for (const file of files) await fetchFile(provider, join(directory, file.path), file);
  await writeManifest(directory, manifest);
}

async function fetchFile(provider: StorageProvider, target: string, file: StoredFile): Promise<void> {
  if (existsSync(target) && (await hashFile(target)).sha256 === file.sha256) return;
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  const part = `${target}.part`;
  const written = await open(part, 'w', 0o600);
  try {
    for (const piece of file.pieces) await written.writeFile(await readPiece(provider, piece));
    await written.sync();
  } finally {
    await written.close();
  }
  if ((await hashFile(part)).sha256 !== file.sha256)
    throw new CommandFailure(`the file ${file.path} of the backup is damaged in the store`);
  await rename(part, target);
}
