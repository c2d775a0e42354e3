import { copyFileSync, existsSync, linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { finishRestore, finishRestoreOfState } from '../../composition/restored-database.ts';
import type { HearthConfiguration } from '../../configuration.ts';
import { systemClock } from '../../kernel/clock.ts';
import {
  claimFile,
  type Database,
  type DatabaseOptions,
  databaseOptions,
  dataStoreEntries,
  openDatabaseExclusively,
  unfinishedRestoreOf,
} from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { type ConfigFlags, configPaths, readConfiguration } from '../configuration-files.ts';
import { CommandFailure } from '../failure.ts';
import { checkFiles, copyFile, hashFile } from './copied-files.ts';
import { backedUpDatabases } from './database-copies.ts';
import { type BackupManifest, backupPaths, configurationPath, readManifest } from './manifest.ts';
import { restoreArchives } from './restore-postgres.ts';

export interface RestoreOptions extends ConfigFlags {
  /** Moves existing files aside instead of refusing to replace them. */
  readonly overwrite?: boolean;
  /** Does only the steps that follow after the database was restored with other tools. */
  readonly databaseOnly?: boolean;
  /** Address of a store. The backup is fetched from it into the directory. */
  readonly store?: string;
  /** Name of a backup in the store; by default the newest. */
  readonly at?: string;
}

/**
 * `hearth restore`: restores a backup, and prepares the database so that numbers which the server assigned after the
 * backup are not assigned again. The server must be stopped.
 */
export async function restore(source: string | undefined, options: RestoreOptions): Promise<void> {
  if (options.databaseOnly) return finishOnly(source, options);
  if (source === undefined) throw new CommandFailure('give the directory of a backup');
  const directory = resolve(source);
  if (options.store !== undefined) {
    const { fetchFromStore } = await import('./store/fetch-from-store.ts');
    await fetchFromStore(directory, { ...options, store: options.store });
  }
  const manifest = readManifest(directory);
  await checkFiles(directory, manifest.files);
  const suffix = `.before-restore-${new Date(systemClock.now()).toISOString().replace(/[:.]/g, '-')}`;
  const replaced = new ReplacedFiles(options.overwrite ?? false, suffix);
  const configurationPaths = [...(options.config ?? []), ...(options.configPath ?? [])];
  if (configurationPaths.length === 0) await restoreConfiguration(directory, manifest, replaced);
  const values = readValues(configurationPaths.length === 0 ? manifest.configuration : configurationPaths);
  if (values.server.server_name !== manifest.serverName) {
    throw new CommandFailure(
      `the backup is of ${manifest.serverName}, and the configuration names ${values.server.server_name}`,
    );
  }
  if (configurationPaths.length > 0) await restoreSigningKey(directory, manifest, values);
  await restoreDatabase(directory, manifest, values, replaced);
  await restoreMedia(directory, manifest, resolve(values.media.media_store_path));
  process.stdout.write(
    `Restored ${manifest.serverName} as it was at ${new Date(manifest.createdTs).toISOString()}.\n` +
      `${replaced.moved.map((path) => `The previous file is in ${path}.\n`).join('')}` +
      'Sync tokens that clients received after the backup stay valid. Sessions that began after it must log in again.\n',
  );
}

/** Keeps existing files that restored files replace, under other names. */
class ReplacedFiles {
  readonly moved: string[] = [];
  readonly #isAllowed: boolean;
  readonly #suffix: string;

  constructor(isAllowed: boolean, suffix: string) {
    this.#isAllowed = isAllowed;
    this.#suffix = suffix;
  }

  /** @throws CommandFailure when the file exists and may not be replaced */
  checkReplaceable(file: string): void {
    if (this.#isAllowed || !existsSync(file)) return;
    throw new CommandFailure(
      `${file} exists: move it away, or give --overwrite, which keeps it under another name`,
    );
  }

  /** Renames a file if it exists. @throws CommandFailure when it exists and may not be replaced */
  move(file: string): void {
    if (!existsSync(file)) return;
    this.checkReplaceable(file);
    renameSync(file, file + this.#suffix);
    this.moved.push(file + this.#suffix);
  }

  /**
   * Gives an existing file a second name before the file with the first name is replaced. The old file is then complete
   * under the second name.
   * @param endings of the names of further files of the same database, for instance `-wal`; these keep their endings
   * @throws CommandFailure when it exists and may not be replaced
   */
  keep(file: string, endings: readonly string[]): void {
    if (!existsSync(file)) return;
    this.checkReplaceable(file);
    const kept = file + this.#suffix;
    for (const ending of ['', ...endings])
      if (existsSync(file + ending)) linkOrCopy(file + ending, kept + ending);
    this.moved.push(kept);
  }
}

function linkOrCopy(file: string, other: string): void {
  try {
    linkSync(file, other);
  } catch {
    // Some file systems have no links.
    copyFileSync(file, other);
  }
}

function readValues(paths: readonly string[]): HearthConfiguration {
  return readConfiguration(paths, { environment: process.env }).values;
}

/** Restores the files of the configuration at their paths. Files with equal contents stay. */
async function restoreConfiguration(
  directory: string,
  manifest: BackupManifest,
  replaced: ReplacedFiles,
): Promise<void> {
  const differing: string[] = [];
  for (const file of manifest.configurationFiles) {
    const stored = manifest.files.find(({ path }) => path === configurationPath(file));
    if (existsSync(file) && (await hashFile(file)).sha256 === stored?.sha256) continue;
    replaced.checkReplaceable(file);
    differing.push(file);
  }
  for (const file of differing) {
    replaced.move(file);
    await copyFile(join(directory, configurationPath(file)), file);
  }
}

/** Writes the signing key to the path that the given configuration names. An existing key stays. */
async function restoreSigningKey(
  directory: string,
  { signingKey }: BackupManifest,
  { federationClient }: HearthConfiguration,
): Promise<void> {
  const { signing_key_path: path } = federationClient;
  if (path === null || signingKey === null || existsSync(path)) return;
  await copyFile(join(directory, configurationPath(signingKey)), path);
}

async function restoreDatabase(
  directory: string,
  manifest: BackupManifest,
  values: HearthConfiguration,
  replaced: ReplacedFiles,
): Promise<void> {
  const { database } = manifest;
  const options = databaseOptions(dataStoreEntries(values.database).main);
  if (options.kind !== database.kind) {
    throw new CommandFailure(
      `the backup has a ${database.kind} database, and the configuration another kind`,
    );
  }
  const source = join(directory, database.path);
  const { state } = backedUpDatabases(values);
  if ((state === undefined) !== (database.statePath === undefined))
    throw new CommandFailure(
      database.statePath === undefined
        ? 'the backup has one database, and the configuration names two'
        : 'the backup has two databases, and the configuration names one',
    );
  if (options.kind === 'postgres') {
    const stateArchives =
      state?.kind === 'postgres'
        ? [{ options: state, file: join(directory, database.statePath ?? ''), finish: finishRestoreOfState }]
        : [];
    const moveId = `${manifest.serverName} ${manifest.createdTs}`;
    await restoreArchives(
      [...stateArchives, { options, file: source, finish: prepare }],
      { moveId, other: directory },
      systemClock.now(),
    );
    return;
  }
  const path = resolve(options.path);
  replaced.checkReplaceable(path);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const release = claimFile(path);
  try {
    await replaceSqlite(source, path, replaced);
  } finally {
    release();
  }
}

/**
 * Prepares the database under another name, and renames it at the end. No server starts while a file with that other
 * name exists, so no server opens a database that is half restored or has lost its write-ahead log.
 */
async function replaceSqlite(source: string, path: string, replaced: ReplacedFiles): Promise<void> {
  const unfinished = unfinishedRestoreOf(path);
  const endings = ['', '-wal', '-shm', '-lock', '-journal'];
  for (const ending of endings) rmSync(unfinished + ending, { force: true });
  await copyFile(source, unfinished);
  await finish({ kind: 'sqlite', path: unfinished });
  replaced.keep(path, ['-wal']);
  for (const ending of ['-wal', '-shm']) rmSync(path + ending, { force: true });
  renameSync(unfinished, path);
  for (const ending of endings) rmSync(unfinished + ending, { force: true });
}

/** Prepares restored databases for a server. @param state has the state groups; absent when the main database has them */
async function finish(options: DatabaseOptions, state?: DatabaseOptions): Promise<void> {
  if (state) await withDatabase(state, finishRestoreOfState);
  await withDatabase(options, prepare);
}

const prepare = (database: Database) => finishRestore(database, () => systemClock.now());

async function withDatabase(
  options: DatabaseOptions,
  run: (database: Database) => Promise<void>,
): Promise<void> {
  const database = await openDatabaseExclusively(options, { log: silentLogger }, () => {});
  try {
    await run(database);
  } finally {
    await database.close();
  }
}

/** Adds the media that are missing. Files have random names, so equal names mean equal files. */
async function restoreMedia(
  directory: string,
  { files }: BackupManifest,
  mediaDirectory: string,
): Promise<void> {
  for (const { path } of files) {
    if (!path.startsWith(backupPaths.media)) continue;
    const target = join(mediaDirectory, 'local', path.slice(backupPaths.media.length));
    if (!existsSync(target)) await copyFile(join(directory, path), target);
  }
}

/** Prepares a database that was restored with the tools of PostgreSQL, or as a file. */
async function finishOnly(source: string | undefined, options: RestoreOptions): Promise<void> {
  if (source !== undefined)
    throw new CommandFailure(
      '--database-only takes no directory: it expects a database that is already restored',
    );
  const paths = configPaths(options);
  if (paths.length === 0) throw new CommandFailure('no configuration found: give one with -c');
  const { main, state } = backedUpDatabases(readValues(paths));
  await finish(main, state);
  process.stdout.write(
    'The restored database is ready: sync tokens that clients received after the backup are valid.\n',
  );
}
