import { existsSync } from 'node:fs';
import {
  type Database,
  type DatabaseOptions,
  databaseOptions,
  dataStoreEntries,
  openDatabase,
  openDatabaseExclusively,
  requireMatchingStores,
} from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { type ConfigFlags, configPaths, readConfiguration } from '../configuration-files.ts';
import { CommandFailure } from '../failure.ts';

/** The options of the databases of a configuration. */
export interface ConfiguredDatabases {
  readonly main: DatabaseOptions;
  /** Has the state groups; absent when `main` has them. */
  readonly state: DatabaseOptions | undefined;
}

/**
 * Returns the options of the databases of the configuration that the flags name.
 * @throws CommandFailure when there is no configuration, or when the main database is a SQLite file that does not exist
 */
export function configuredDatabases(flags: ConfigFlags): ConfiguredDatabases {
  const paths = configPaths(flags);
  if (paths.length === 0) throw new CommandFailure('no configuration found: give one with -c');
  const { main, state } = dataStoreEntries(
    readConfiguration(paths, { environment: process.env }).values.database,
  );
  const options = databaseOptions(main);
  if (options.kind === 'sqlite' && !existsSync(options.path))
    throw new CommandFailure(`there is no database ${options.path}`);
  return { main: options, state: state === main ? undefined : databaseOptions(state) };
}

/** The opened databases; `state` is the same as `main` when the configuration has only one. */
export interface OpenStores {
  readonly main: Database;
  readonly state: Database;
  close(): Promise<void>;
}

/**
 * Opens the databases.
 * @param exclusively true: no server can use them until they are closed
 * @throws StartFailure when the two databases belong to different servers, or when only one database of a pair is given
 */
export async function openStores(
  { main, state }: ConfiguredDatabases,
  exclusively: boolean,
): Promise<OpenStores> {
  const environment = { log: silentLogger };
  const open = (options: DatabaseOptions) =>
    exclusively
      ? openDatabaseExclusively(options, environment, () => {})
      : openDatabase(options, environment);
  const opened: Database[] = [];
  const close = async () => {
    for (const database of opened) await database.close();
  };
  try {
    const mainDatabase = await open(main);
    opened.push(mainDatabase);
    const stateDatabase = state ? await open(state) : undefined;
    if (stateDatabase) opened.push(stateDatabase);
    await requireMatchingStores(
      { kind: main.kind, database: mainDatabase },
      state && stateDatabase && { kind: state.kind, database: stateDatabase },
    );
    return { main: mainDatabase, state: stateDatabase ?? mainDatabase, close };
  } catch (error) {
    await close();
    throw error;
  }
}
