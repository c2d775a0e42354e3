import { rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { HearthConfiguration } from '../../../configuration.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { claimFile, DatabaseInUse } from '../../../kernel/database/index.ts';
import { ownSoftware } from '../../../kernel/outbound/index.ts';
import type { StorageProvider } from '../../../media/index.ts';
import { type ConfigFlags, configPaths, readConfiguration } from '../../configuration-files.ts';
import { CommandFailure } from '../../failure.ts';
import { filesOfConfiguration } from '../configuration-files.ts';
import { filesBelow } from '../copied-files.ts';
import { copyDatabases } from '../database-copies.ts';
import { lastBackup, lastBackupFile, makeDirectoryForServer, noteBackup } from '../last-backup.ts';
import { type BackupManifest, backupPaths, configurationPath, formatOf } from '../manifest.ts';
import { openStore } from './open-store.ts';
import { backupFileOf, PieceWriter, readPiece } from './piece-writer.ts';
import { pruneStore } from './prune.ts';
import { addToIndex, readBackup, readIndex, type StoredFile, writeBackup } from './stored-backup.ts';

export interface StoreFlags {
  /** Address of the store. */
  readonly store: string;
  /** Number of newest backups that are kept; absent: all are kept. */
  readonly keep?: number;
  /** Reads every piece of the last backup, and sends missing and damaged pieces again. */
  readonly verify?: boolean;
}

/**
 * `hearth backup --store`: adds a backup to a store. Only pieces that the last backup in the store does not have are
 * sent.
 */
export async function backupToStore(flags: ConfigFlags & StoreFlags): Promise<void> {
  const paths = configPaths(flags).map((path) => resolve(path));
  if (paths.length === 0) throw new CommandFailure('no configuration found: give one with -c');
  const { values } = readConfiguration(paths, { environment: process.env });
  // The running server, which copies a SQLite database itself, can write below the directory of the media.
  const work = resolve(values.media.media_store_path, 'backup-work');
  const release = claimWork(work);
  try {
    await backUp(flags, paths, values, work);
  } finally {
    release();
  }
}

/**
 * Claims the directory for this backup.
 * @returns a function that releases the directory
 * @throws CommandFailure when another backup uses the directory
 */
function claimWork(work: string): () => void {
  makeDirectoryForServer(dirname(work));
  try {
    return claimFile(work, 0);
  } catch (error) {
    if (!(error instanceof DatabaseInUse)) throw error;
    throw new CommandFailure('another backup of this server to a store is running');
  }
}

async function backUp(
  flags: StoreFlags,
  paths: readonly string[],
  values: HearthConfiguration,
  work: string,
): Promise<void> {
  const { provider, close } = await openStore(flags.store, values);
  try {
    rmSync(work, { recursive: true, force: true });
    // The running server writes its copy of a SQLite database there.
    makeDirectoryForServer(join(work, 'database'));
    const { name, createdTs, files, sentBytes, damaged } = await addBackup(
      provider,
      paths,
      values,
      work,
      flags,
    );
    noteBackup(values, { createdTs, target: flags.store });
    const pruned = flags.keep === undefined ? 0 : await pruneStore(provider, flags.keep);
    const bytes = files.reduce((sum, { size }) => sum + size, 0);
    process.stdout.write(
      `Backed up ${values.server.server_name} to ${flags.store} as ${name}: ${files.length} files with ${bytes} bytes, of which ${sentBytes} were sent.\n` +
        `${damaged > 0 ? `${damaged} pieces of the last backup were missing or damaged in the store.\n` : ''}` +
        `${pruned > 0 ? `${pruned} older backups were deleted.\n` : ''}`,
    );
  } finally {
    rmSync(work, { recursive: true, force: true });
    await close();
  }
}

/** The backup that a call of `addBackup` has added. */
interface AddedBackup {
  readonly name: string;
  readonly createdTs: number;
  readonly files: readonly StoredFile[];
  readonly sentBytes: number;
  /** Number of pieces of the last backup that were missing or damaged. */
  readonly damaged: number;
}

async function addBackup(
  provider: StorageProvider,
  paths: readonly string[],
  values: HearthConfiguration,
  work: string,
  { store, verify }: StoreFlags,
): Promise<AddedBackup> {
  const createdTs = systemClock.now();
  const serverName = values.server.server_name;
  const index = await readIndex(provider);
  const last = index.backups.at(-1);
  if (last !== undefined && last.serverName !== serverName)
    throw new CommandFailure(`the store has backups of ${last.serverName}: give each server its own store`);
  if (last === undefined && lastBackup(values)?.target === store)
    throw new CommandFailure(
      `the store ${store} is empty, although the last backup was written to it: is it mounted? Delete ${lastBackupFile(values)} to begin again`,
    );
  const lastFiles = last === undefined ? [] : (await readBackup(provider, last.name)).files;
  const damaged = verify ? await damagedPieces(provider, lastFiles) : new Set<string>();
  const intactFiles = lastFiles.filter(({ pieces }) => !pieces.some((piece) => damaged.has(piece)));
  const writer = new PieceWriter(
    provider,
    new Set(lastFiles.flatMap(({ pieces }) => pieces)).difference(damaged),
    join(work, 'pieces'),
  );
  // The database is copied first, so that the files of all media rows in it are complete.
  const { database, files: copied } = await copyDatabases(values, work, true);
  const files: StoredFile[] = [];
  for (const path of copied) files.push(await writer.add(path, join(work, path)));
  files.push(...(await addMedia(writer, resolve(values.media.media_store_path), intactFiles)));
  const configurationFiles = filesOfConfiguration(paths, values);
  for (const file of configurationFiles) files.push(await writer.add(configurationPath(file), file));
  await writer.settled();
  const { signing_key_path: signingKey } = values.federationClient;
  const manifest: BackupManifest = {
    format: formatOf(database),
    createdTs,
    version: ownSoftware().version,
    serverName,
    database,
    configuration: [...paths],
    configurationFiles,
    signingKey: signingKey === null ? null : resolve(signingKey),
    files: files.map(backupFileOf),
  };
  const name = new Date(createdTs).toISOString().replace(/[-:.]/g, '');
  await writeBackup(provider, name, { storeFormat: 1, manifest, files });
  await addToIndex(provider, index, { name, createdTs, serverName });
  return { name, createdTs, files, sentBytes: writer.sentBytes, damaged: damaged.size };
}

/** Returns the hashes of the pieces of files that are missing or damaged in the store. */
async function damagedPieces(provider: StorageProvider, files: readonly StoredFile[]): Promise<Set<string>> {
  const damaged = new Set<string>();
  for (const piece of new Set(files.flatMap(({ pieces }) => pieces))) {
    try {
      await readPiece(provider, piece);
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error;
      damaged.add(piece);
    }
  }
  return damaged;
}

/**
 * Adds the media of local users. Media files never change, so files that the last backup has with the same size are not
 * read again.
 * @param lastFiles those files of the last backup that have no damaged pieces
 */
async function addMedia(
  writer: PieceWriter,
  mediaDirectory: string,
  lastFiles: readonly StoredFile[],
): Promise<StoredFile[]> {
  const local = join(mediaDirectory, 'local');
  const known = new Map(lastFiles.map((file) => [file.path, file]));
  const files: StoredFile[] = [];
  for (const file of await filesBelow(local)) {
    const path = backupPaths.media + file;
    const stored = known.get(path);
    const source = join(local, file);
    if (stored !== undefined && statSync(source, { throwIfNoEntry: false })?.size === stored.size) {
      files.push(stored);
      continue;
    }
    try {
      files.push(await writer.add(path, source));
    } catch (error) {
      // A file that does not exist was deleted after the directory was read.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return files;
}
