import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { HearthConfiguration } from '../../configuration.ts';
import { systemClock } from '../../kernel/clock.ts';
import { askServer, controlPathOf, NoServer } from '../../kernel/control/index.ts';
import {
  type CopyProgress,
  copySqliteFile,
  type DatabaseOptions,
  databaseOptions,
  dataStoreEntries,
} from '../../kernel/database/index.ts';
import { ownSoftware } from '../../kernel/outbound/index.ts';
import { type ConfigFlags, configPaths, readConfiguration } from '../configuration-files.ts';
import { CommandFailure } from '../failure.ts';
import { filesOfConfiguration } from './configuration-files.ts';
import { copyFile, filesBelow, hashFile } from './copied-files.ts';
import { type BackupFile, backupPaths, configurationPath, writeManifest } from './manifest.ts';
import { dumpPostgres } from './postgres-tools.ts';

/**
 * `hearth backup`: writes the database, the local media, the configuration and the keys into a new directory. The server
 * may run: a SQLite file is then copied by the server itself.
 */
export async function backup(target: string, flags: ConfigFlags): Promise<void> {
  const paths = configPaths(flags).map((path) => resolve(path));
  if (paths.length === 0) throw new CommandFailure('no configuration found: give one with -c');
  const { values } = readConfiguration(paths, { environment: process.env });
  const directory = resolve(target);
  makeDirectory(directory);
  try {
    await fill(directory, paths, values);
  } catch (error) {
    for (const name of ['database', 'media', 'configuration']) {
      rmSync(join(directory, name), { recursive: true, force: true });
    }
    throw error;
  }
}

/** Writes everything into the empty directory. */
async function fill(directory: string, paths: readonly string[], values: HearthConfiguration): Promise<void> {
  const createdTs = systemClock.now();
  const options = databaseOptions(dataStoreEntries(values.database).main);
  // The database is first: the files of all media that it knows are complete.
  const database = await copyDatabase(options, directory);
  const media = await copyMedia(resolve(values.media.media_store_path), directory);
  const configurationFiles = filesOfConfiguration(paths, values);
  const configuration: BackupFile[] = [];
  for (const file of configurationFiles) {
    const path = configurationPath(file);
    configuration.push({ path, ...(await copyFile(file, join(directory, path))) });
  }
  const { signing_key_path: signingKey } = values.federationClient;
  await writeManifest(directory, {
    format: 1,
    createdTs,
    version: ownSoftware().version,
    serverName: values.server.server_name,
    database: { kind: options.kind, path: database.path },
    configuration: [...paths],
    configurationFiles,
    signingKey: signingKey === null ? null : resolve(signingKey),
    files: [database, ...media, ...configuration],
  });
  process.stdout.write(report(directory, values, [database, ...media, ...configuration], media.length));
}

function makeDirectory(directory: string): void {
  if (existsSync(directory) && readdirSync(directory).length > 0) {
    throw new CommandFailure(`${directory} is not empty: give a new directory for each backup`);
  }
  mkdirSync(join(directory, 'database'), { recursive: true, mode: 0o700 });
}

async function copyDatabase(options: DatabaseOptions, directory: string): Promise<BackupFile> {
  const path = backupPaths[options.kind];
  const target = join(directory, path);
  if (options.kind === 'postgres') await dumpPostgres(options, target);
  else await copySqlite(resolve(options.path), target);
  return { path, ...(await hashFile(target)) };
}

/** Asks the running server to copy its database; copies it here when there is none. */
async function copySqlite(source: string, target: string): Promise<void> {
  if (!existsSync(source)) throw new CommandFailure(`there is no database ${source}`);
  const show = ({ copied, total }: Partial<CopyProgress>) => {
    if (copied !== undefined && total && process.stderr.isTTY) {
      process.stderr.write(`\rdatabase: ${Math.floor((copied / total) * 100)} %\u001b[K`);
    }
  };
  try {
    await askServer(controlPathOf(source), 'copy-database', { target }, show).catch((error: unknown) => {
      if (error instanceof NoServer) return copySqliteFile({ source, target }, show);
      throw error;
    });
  } catch (error) {
    throw new CommandFailure(
      `the database cannot be copied to ${target}: ${error instanceof Error ? error.message : error}`,
    );
  }
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K');
}

/** Copies the media of local users: copies of remote media and thumbnails are made again on demand. */
async function copyMedia(mediaDirectory: string, directory: string): Promise<BackupFile[]> {
  const local = join(mediaDirectory, 'local');
  const copied: BackupFile[] = [];
  for (const file of await filesBelow(local)) {
    const path = backupPaths.media + file;
    try {
      copied.push({ path, ...(await copyFile(join(local, file), join(directory, path))) });
    } catch (error) {
      // It was deleted since the directory was read.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return copied;
}

function report(
  directory: string,
  { server }: HearthConfiguration,
  files: readonly BackupFile[],
  media: number,
): string {
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  return (
    `Backed up ${server.server_name} to ${directory}: the database, ${media} media files, the configuration and the keys, ` +
    `${Math.ceil(bytes / 1024 / 1024)} MiB.\nKeep it as safe as the server: it contains the signing key and all messages.\n`
  );
}
