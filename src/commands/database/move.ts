import {
  type DatabaseOptions,
  databaseOptions,
  dataStoreEntries,
  describeDatabase,
  type MovedTable,
  moveDatabase,
} from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { migrations, slices } from '../../slices.ts';
import { type ConfigFlags, configPaths, readConfiguration } from '../configuration-files.ts';
import { CommandFailure } from '../failure.ts';
import { ProgressLine } from './progress.ts';

export interface MoveFlags extends ConfigFlags {
  /** File with the option `database` for the new database; the other options of the file are ignored. */
  readonly to: string;
  /** Whether to replace the contents that an earlier move has left in the target. */
  readonly overwrite?: boolean;
}

/**
 * `hearth database move`: moves all contents to another database. Each call copies the changes since the call before.
 * The last call needs a stopped server.
 */
export async function moveToDatabase(flags: MoveFlags): Promise<void> {
  const paths = configPaths(flags);
  if (paths.length === 0) throw new CommandFailure('no configuration found: give one with -c');
  const source = onlyDatabaseOf(paths);
  const target = onlyDatabaseOf([...paths, flags.to]);
  const progress = new ProgressLine();
  const { isComplete, tables } = await moveDatabase({
    source,
    target,
    migrations,
    textIndexes: slices.flatMap(({ textIndexes = [] }) => textIndexes),
    randomness: systemRandomness,
    log: silentLogger,
    overwrites: flags.overwrite ?? false,
    onProgress: ({ table, rows, totalRows }) => progress.show(table, rows, totalRows),
  }).finally(() => progress.end());
  process.stdout.write(isComplete ? completed(source, target, tables) : copied(target, tables));
}

function onlyDatabaseOf(paths: readonly string[]): DatabaseOptions {
  const { main, state } = dataStoreEntries(
    readConfiguration(paths, { environment: process.env }).values.database,
  );
  if (main !== state) throw new CommandFailure('several databases (option databases) cannot be moved');
  return databaseOptions(main);
}

const countRows = (tables: readonly MovedTable[]) => tables.reduce((sum, { rows }) => sum + rows, 0);

function copied(target: DatabaseOptions, tables: readonly MovedTable[]): string {
  return (
    `${countRows(tables)} rows were copied to ${describeDatabase(target)} while the server runs.\n` +
    'Stop the server and call the same command again: it copies the changes since this call, and compares all rows.\n'
  );
}

function completed(source: DatabaseOptions, target: DatabaseOptions, tables: readonly MovedTable[]): string {
  const lines = tables
    .filter(({ rows }) => rows > 0)
    .map(({ name, rows, hash }) => `  ${name}: ${rows} rows${hash === undefined ? '' : `, hash ${hash}`}\n`);
  return (
    `All tables are equal in both databases:\n${lines.join('')}` +
    `${countRows(tables)} rows were moved to ${describeDatabase(target)}.\n` +
    `No server starts on ${describeDatabase(source)} any more. Name the new database in the configuration, and start the server.\n`
  );
}
