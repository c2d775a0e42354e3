import { hash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import type { StorageProvider } from '../../../media/index.ts';
import { CommandFailure } from '../../failure.ts';
import { manifestShape } from '../manifest.ts';

/** A file of a stored backup. Its pieces are objects of the store that are named by their hashes. */
const storedFileShape = Type.Object({
  path: Type.String(),
  size: Type.Number(),
  sha256: Type.String(),
  /** Hashes of the pieces, in order. */
  pieces: Type.Array(Type.String()),
});

const storedBackupShape = Type.Object({
  /** Version of the format. A change that older versions of Hearth cannot read increases it. */
  storeFormat: Type.Literal(1),
  manifest: manifestShape,
  files: Type.Array(storedFileShape),
});

const indexShape = Type.Object({
  storeFormat: Type.Literal(1),
  /** Oldest first. */
  backups: Type.Array(
    Type.Object({ name: Type.String(), createdTs: Type.Number(), serverName: Type.String() }),
  ),
});

export type StoredFile = Type.Static<typeof storedFileShape>;
export type StoredBackup = Type.Static<typeof storedBackupShape>;
export type StoreIndex = Type.Static<typeof indexShape>;

const validBackup = Compile(storedBackupShape);
const validIndex = Compile(indexShape);

const indexPath = 'index.json';
const backupPath = (name: string): string => `backups/${name}.json`;

/** Returns the path of a piece in the store. */
export const piecePath = (sha256: string): string => `pieces/${sha256.slice(0, 2)}/${sha256.slice(2)}`;

/**
 * Reads the list of backups; it is empty for a new store.
 * @throws CommandFailure when the list is damaged, or this version of Hearth does not know its format
 */
export async function readIndex(provider: StorageProvider): Promise<StoreIndex> {
  const index = await readJson(provider, indexPath);
  if (index === undefined) return { storeFormat: 1, backups: [] };
  if (!validIndex.Check(index))
    throw new CommandFailure('the index of the store cannot be read by this version of Hearth');
  return index;
}

/** @throws CommandFailure when the store does not have the backup, or its description is damaged */
export async function readBackup(provider: StorageProvider, name: string): Promise<StoredBackup> {
  const backup = await readJson(provider, backupPath(name));
  if (!validBackup.Check(backup))
    throw new CommandFailure(`the backup ${name} cannot be read from the store`);
  return backup;
}

export const writeIndex = (provider: StorageProvider, index: StoreIndex): Promise<void> =>
  writeJson(provider, indexPath, index);

export const writeBackup = (provider: StorageProvider, name: string, backup: StoredBackup): Promise<void> =>
  writeJson(provider, backupPath(name), backup);

/**
 * Adds a backup to the list. Backups that another process has added since `indexAtStart` stay. If another process has
 * deleted backups since then, it may also have deleted pieces of this backup: pieces that the store had when the backup
 * began were not sent again.
 * @param indexAtStart the list when the backup began
 * @throws CommandFailure when a backup of `indexAtStart` is not listed any more
 */
export async function addToIndex(
  provider: StorageProvider,
  indexAtStart: StoreIndex,
  added: StoreIndex['backups'][number],
): Promise<void> {
  const index = await readIndex(provider);
  const names = new Set(index.backups.map(({ name }) => name));
  if (!indexAtStart.backups.every(({ name }) => names.has(name))) {
    await deleteBackup(provider, added.name);
    throw new CommandFailure(
      'another backup has deleted older backups of the store, and perhaps pieces that this one needs: start the backup again',
    );
  }
  await writeIndex(provider, { ...index, backups: [...index.backups, added] });
}

export const deleteBackup = (provider: StorageProvider, name: string): Promise<void> =>
  provider.delete(backupPath(name));

async function readJson(provider: StorageProvider, path: string): Promise<unknown> {
  const stream = await provider.open(path);
  if (stream === undefined) return undefined;
  const text = (await buffer(stream)).toString('utf8');
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandFailure(`${path} of the store is damaged`);
  }
}

async function writeJson(provider: StorageProvider, path: string, value: unknown): Promise<void> {
  const text = JSON.stringify(value);
  const folder = mkdtempSync(join(tmpdir(), 'hearth-backup-'));
  try {
    const source = join(folder, 'file');
    writeFileSync(source, text, { mode: 0o600 });
    await provider.store(path, { source, size: Buffer.byteLength(text), sha256: hash('sha256', text) });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
