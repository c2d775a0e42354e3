import { describeDatabase, joinDatabases } from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { stateGroupIds, stateGroupTables } from '../../room-engine/index.ts';
import { migrations, stateMigrations } from '../../slices.ts';
import type { ConfigFlags } from '../configuration-files.ts';
import { CommandFailure } from '../failure.ts';
import { configuredDatabases } from './configured-database.ts';
import { ProgressLine } from './progress.ts';

/**
 * `hearth database join`: copies the state groups from the database of the data store `state` back to the database of
 * `main`.
 */
export async function joinConfiguredDatabases(flags: ConfigFlags): Promise<void> {
  const { main, state } = configuredDatabases(flags);
  if (state === undefined)
    throw new CommandFailure(
      'the configuration has only one database: give the configuration whose option databases has two',
    );
  const progress = new ProgressLine();
  const tables = await joinDatabases({
    source: state,
    target: main,
    migrations,
    stateMigrations,
    stateTables: stateGroupTables,
    bound: stateGroupIds,
    log: silentLogger,
    onProgress: ({ table, rows, totalRows }) => progress.show(table, rows, totalRows),
  }).finally(() => progress.end());
  const lines = tables.map(({ name, rows, hash }) => `  ${name}: ${rows} rows, hash ${hash}\n`);
  process.stdout.write(
    `The state groups are in ${describeDatabase(main)}:\n${lines.join('')}` +
      `Name only that database in the configuration, with the option database, and start the server. No server starts on ${describeDatabase(state)} any more.\n`,
  );
}
