import { describeDatabase, splitDatabase } from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { stateGroupIds, stateGroupTables } from '../../room-engine/index.ts';
import { migrations, stateMigrations } from '../../slices.ts';
import type { ConfigFlags } from '../configuration-files.ts';
import { CommandFailure } from '../failure.ts';
import { configuredDatabases } from './configured-database.ts';
import { ProgressLine } from './progress.ts';

/** `hearth database split`: moves the state groups to the database of the data store `state`. */
export async function splitConfiguredDatabase(flags: ConfigFlags): Promise<void> {
  const { main, state } = configuredDatabases(flags);
  if (state === undefined)
    throw new CommandFailure(
      'the configuration has only one database: give a configuration whose option databases has the data stores main and state in two databases',
    );
  const progress = new ProgressLine();
  const { isComplete, tables } = await splitDatabase({
    source: main,
    target: state,
    migrations,
    stateMigrations,
    stateTables: stateGroupTables,
    bound: stateGroupIds,
    randomness: systemRandomness,
    log: silentLogger,
    onProgress: ({ table, rows, totalRows }) => progress.show(table, rows, totalRows),
  }).finally(() => progress.end());
  const lines = tables.map(({ name, rows, hash }) => `  ${name}: ${rows} rows, hash ${hash}\n`);
  process.stdout.write(
    isComplete
      ? `The state groups are in ${describeDatabase(state)}:\n${lines.join('')}Start the server with this configuration.\n`
      : `${lines.join('')}were copied while the server runs.\nStop the server and call the same command again.\n`,
  );
}
