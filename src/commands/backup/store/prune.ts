import { isDeepStrictEqual } from 'node:util';
import type { StorageProvider } from '../../../media/index.ts';
import { deleteBackup, piecePath, readBackup, readIndex, writeIndex } from './stored-backup.ts';

/**
 * Deletes all backups except the newest `kept` ones, and the pieces that only deleted backups have. The index is written
 * first, so that an interruption leaves unused pieces, and never a listed backup without its pieces.
 * @param kept number of backups that stay, at least 1
 * @returns the number of deleted backups
 */
export async function pruneStore(provider: StorageProvider, kept: number): Promise<number> {
  const index = await readIndex(provider);
  const removed = index.backups.slice(0, -kept);
  if (removed.length === 0) return 0;
  const needed = new Set<string>();
  for (const { name } of index.backups.slice(-kept))
    for (const piece of await piecesOf(provider, name)) needed.add(piece);
  const unneeded = new Set<string>();
  for (const { name } of removed)
    for (const piece of await piecesOf(provider, name)) if (!needed.has(piece)) unneeded.add(piece);
  // Since the index was read, another call may have added a backup that needs pieces which are to be deleted.
  if (!isDeepStrictEqual(await readIndex(provider), index)) return pruneStore(provider, kept);
  await writeIndex(provider, { ...index, backups: index.backups.slice(-kept) });
  for (const { name } of removed) await deleteBackup(provider, name);
  for (const piece of unneeded) await provider.delete(piecePath(piece));
  return removed.length;
}

/** Returns the hashes of all pieces of a backup. */
export async function piecesOf(provider: StorageProvider, name: string): Promise<string[]> {
  return (await readBackup(provider, name)).files.flatMap(({ pieces }) => pieces);
}
