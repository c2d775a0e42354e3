import { systemClock } from '../../clock.ts';
import { StartFailure } from '../../start-failure.ts';
import { openMarkedDatabaseExclusively } from '../open.ts';
import { describeDatabase, type MovedTable, requireMigrated } from './move-database.ts';
import { readMark, requireUnmarked, writeMark } from './move-marks.ts';
import { copyBound, copyTables, type SplitDeps } from './split-database.ts';
import { isPair, mismatch, readStoreMark, removeStoreMark } from './store-marks.ts';
import type { TransferDatabase } from './transfer-database.ts';

/**
 * Copies the state groups of a server with two databases from the database of the store `state` (`source`) back to the
 * database of the store `main` (`target`). No server may run meanwhile. The call may be interrupted at any point and
 * repeated.
 *
 * A server starts with both databases only before the source is marked as moved, and with the target alone only after
 * the mark `main` of the target was removed. The source is marked first, so that at no time both configurations start.
 * @throws StartFailure when a server uses the databases, they do not belong to one server, or one of them is not in the
 * required state; nothing is changed then
 */
export async function joinDatabases(deps: Omit<SplitDeps, 'randomness'>): Promise<readonly MovedTable[]> {
  const open = async (options: SplitDeps['source']): Promise<TransferDatabase> => ({
    kind: options.kind,
    database: await openMarkedDatabaseExclusively(options, deps, () => {}),
  });
  const main = await open(deps.target);
  try {
    const state = await open(deps.source);
    try {
      return await join(deps, main, state);
    } finally {
      await state.database.close();
    }
  } finally {
    await main.database.close();
  }
}

async function join(
  deps: Omit<SplitDeps, 'randomness'>,
  main: TransferDatabase,
  state: TransferDatabase,
): Promise<readonly MovedTable[]> {
  const clock = deps.clock ?? systemClock;
  await requireUnmarked(main.database, main.kind);
  const mainMark = await readStoreMark(main);
  const stateMark = await readStoreMark(state);
  if (!mainMark) throw new StartFailure('the database of the data store main has the state groups already');
  if (!isPair(mainMark, stateMark)) throw new StartFailure(mismatch);
  const mark = await readMark(state.database, state.kind);
  // A call that was interrupted before its last step has left the mark `moved`.
  if (mark && mark.state !== 'moved') await requireUnmarked(state.database, state.kind);
  await requireMigrated(main, deps.migrations, 'the database of the data store main');
  await requireMigrated(state, deps.stateMigrations, 'the database of the data store state');
  const tables = await copyTables(deps, state, main, true);
  await copyBound(state, main, deps.bound);
  const { setId } = mainMark;
  await writeMark(
    state.database,
    { state: 'moved', moveId: setId, other: describeDatabase(deps.target) },
    clock.now(),
  );
  await removeStoreMark(main.database);
  return tables;
}
