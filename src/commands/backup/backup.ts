import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { HearthConfiguration } from '../../configuration.ts';
import { systemClock } from '../../kernel/clock.ts';
import { ownSoftware } from '../../kernel/outbound/index.ts';
import { type ConfigFlags, configPaths, readConfiguration } from '../configuration-files.ts';
import { CommandFailure } from '../failure.ts';
import { filesOfConfiguration } from './configuration-files.ts';
import { copyFile, filesBelow, hashFile } from './copied-files.ts';
import { copyDatabases } from './database-copies.ts';
import { noteBackup } from './last-backup.ts';
import {
  type BackupFile,
  backupPaths,
  configurationPath,
  formatOf,
  manifestName,
  writeManifest,
} from './manifest.ts';
import type { StoreFlags } from './store/backup-to-store.ts';

/**
 * `hearth backup`: writes the database, the local media, the configuration and the keys into a new directory or a store.
 * The server may run: a SQLite file is then copied by the server itself.
 */
export async function backup(
  target: string | undefined,
  { store, keep, verify, ...flags }: ConfigFlags & Partial<StoreFlags>,
): Promise<void> {
  if (store !== undefined) {
    if (target !== undefined) throw new CommandFailure('give a directory or a store, not both');
    const { backupToStore } = await import('./store/backup-to-store.ts');
    return backupToStore({ ...flags, store, ...(keep && { keep }), ...(verify && { verify }) });
  }
  if (target === undefined) throw new CommandFailure('give a directory or a store');
  const paths = configPaths(flags).map((path) => resolve(path));
  if (paths.length === 0) throw new CommandFailure('no configuration found: give one with -c');
  const { values } = readConfiguration(paths, { environment: process.env });
  const directory = resolve(target);
  makeDirectory(directory);
  try {
    await fill(directory, paths, values);
  } catch (error) {
    for (const name of ['database', 'media', 'configuration', manifestName]) {
      rmSync(join(directory, name), { recursive: true, force: true });
    }
    throw error;
  }
}

/** Writes the contents of a backup into an empty directory. @param paths the paths of the configuration */
async function fill(directory: string, paths: readonly string[], values: HearthConfiguration): Promise<void> {
  const createdTs = systemClock.now();
  // The database is copied first, so that the files of all media rows in it are complete.
  const { database, files: copied } = await copyDatabases(values, directory, false);
  const databases: BackupFile[] = [];
  for (const path of copied) databases.push({ path, ...(await hashFile(join(directory, path))) });
  const media = await copyMedia(resolve(values.media.media_store_path), directory);
  const configurationFiles = filesOfConfiguration(paths, values);
  const configuration: BackupFile[] = [];
  for (const file of configurationFiles) {
    const path = configurationPath(file);
    configuration.push({ path, ...(await copyFile(file, join(directory, path))) });
  }
  const { signing_key_path: signingKey } = values.federationClient;
  await writeManifest(directory, {
    format: formatOf(database),
    createdTs,
    version: ownSoftware().version,
    serverName: values.server.server_name,
    database,
    configuration: [...paths],
    configurationFiles,
    signingKey: signingKey === null ? null : resolve(signingKey),
    files: [...databases, ...media, ...configuration],
  });
  noteBackup(values, { createdTs, target: directory });
  process.stdout.write(report(directory, values, [...databases, ...media, ...configuration], media.length));
}

/** Creates the directory of the backup. @throws CommandFailure when it has contents */
function makeDirectory(directory: string): void {
  if (existsSync(directory) && readdirSync(directory).length > 0) {
    throw new CommandFailure(`${directory} is not empty: give a new directory for each backup`);
  }
  mkdirSync(join(directory, 'database'), { recursive: true, mode: 0o700 });
}

/**
 * Copies the media of local users. Remote media and thumbnails are left out, because the server fetches or makes them
 * again on demand.
 */
async function copyMedia(mediaDirectory: string, directory: string): Promise<BackupFile[]> {
  const local = join(mediaDirectory, 'local');
  const copied: BackupFile[] = [];
  for (const file of await filesBelow(local)) {
    const path = backupPaths.media + file;
    try {
      copied.push({ path, ...(await copyFile(join(local, file), join(directory, path))) });
    } catch (error) {
      // A file that does not exist was deleted after the directory was read.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return copied;
}

function report(
  directory: string,
  { server }: HearthConfiguration,
  files: readonly BackupFile[],
  mediaCount: number,
): string {
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  return (
    `Backed up ${server.server_name} to ${directory}: the database, ${mediaCount} media files, the configuration and the keys, ` +
    `${Math.ceil(bytes / 1024 / 1024)} MiB.\nKeep it as safe as the server: it contains the signing key and all messages.\n`
  );
}
