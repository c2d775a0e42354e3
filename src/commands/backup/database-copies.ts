import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { HearthConfiguration } from '../../configuration.ts';
import { controlPathOf, NoServer, sendCommand } from '../../kernel/control/index.ts';
import {
  type CopyProgress,
  copySqliteFile,
  type DatabaseOptions,
  databaseOptions,
  dataStoreEntries,
  openDatabase,
  requireUnmarked,
  withSnapshot,
} from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { CommandFailure } from '../failure.ts';
import { filesBelow } from './copied-files.ts';
import type { BackupManifest } from './manifest.ts';
import { backupPaths } from './manifest.ts';
import { dumpPostgres } from './postgres-tools.ts';

/** Copies of all databases of a server. */
export interface DatabaseCopies {
  readonly database: BackupManifest['database'];
  /** Paths of the copied files, relative to the directory given to `copyDatabases`. */
  readonly files: readonly string[];
}

/** Returns how to open the databases; `state` is `undefined` when `main` contains the state groups as well. */
export function backedUpDatabases({ database }: HearthConfiguration): {
  readonly main: DatabaseOptions;
  readonly state: DatabaseOptions | undefined;
} {
  const { main, state } = dataStoreEntries(database);
  return { main: databaseOptions(main), state: state === main ? undefined : databaseOptions(state) };
}

/**
 * Copies all databases below a directory, while the server may run. The database of state groups is copied after the
 * main database, so that its copy has every group that the copy of the main database needs.
 * @param hasFilePerTable whether a dump of PostgreSQL has a file for each table; the file of an unchanged table is then
 * the same as in the previous dump
 */
export async function copyDatabases(
  values: HearthConfiguration,
  directory: string,
  hasFilePerTable: boolean,
): Promise<DatabaseCopies> {
  const { main, state } = backedUpDatabases(values);
  await requireUsable(main);
  mkdirSync(join(directory, 'database'), { recursive: true, mode: 0o700 });
  const suffix = hasFilePerTable && main.kind === 'postgres' ? 'FilePerTable' : '';
  const path = backupPaths[`${main.kind}${suffix}` as 'sqlite' | 'postgres' | 'postgresFilePerTable'];
  const file = join(directory, path);
  const statePath = hasFilePerTable ? backupPaths.stateFilePerTable : backupPaths.state;
  const stateFile = join(directory, statePath);
  if (main.kind === 'sqlite') await copySqlite(resolve(main.path), file);
  else if (state?.kind !== 'postgres') await dumpPostgres(main, { file, hasFilePerTable });
  else {
    // The second snapshot follows the first one at once: groups that the first one needs are not cleaned up in between.
    const environment = { log: silentLogger };
    await withSnapshot(main, environment, (mainSnapshot) =>
      withSnapshot(state, environment, async (stateSnapshot) => {
        await dumpPostgres(main, { file, hasFilePerTable, snapshot: mainSnapshot });
        await dumpPostgres(state, { file: stateFile, hasFilePerTable, snapshot: stateSnapshot });
      }),
    );
  }
  const files = (await filesBelow(join(directory, 'database'))).map((file) => `database/${file}`);
  return { database: { kind: main.kind, path, ...(state && { statePath }) }, files };
}

/** @throws StartFailure when the database was moved, or when a move, split or restore into it is not complete */
async function requireUsable(options: DatabaseOptions): Promise<void> {
  if (options.kind === 'sqlite' && !existsSync(options.path)) return;
  const database = await openDatabase(options, { log: silentLogger });
  try {
    await requireUnmarked(database, options.kind);
  } finally {
    await database.close();
  }
}

/**
 * Sends the running server the command to copy its database; copies the database in this process when no server answers.
 */
async function copySqlite(source: string, target: string): Promise<void> {
  if (!existsSync(source)) throw new CommandFailure(`there is no database ${source}`);
  const show = ({ copied, total }: Partial<CopyProgress>) => {
    if (copied !== undefined && total && process.stderr.isTTY) {
      process.stderr.write(`\rdatabase: ${Math.floor((copied / total) * 100)} %\u001b[K`);
    }
  };
  try {
    await sendCommand(controlPathOf(source), 'copy-database', { target }, show).catch((error: unknown) => {
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
