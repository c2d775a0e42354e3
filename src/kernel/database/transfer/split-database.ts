import { CompiledQuery } from 'kysely';
import { systemClock } from '../../clock.ts';
import { randomLetters } from '../../randomness.ts';
import { StartFailure } from '../../start-failure.ts';
import type { Migration } from '../database.ts';
import { appliedMigrations, migrate } from '../migrate.ts';
import { openMarkedDatabaseExclusively } from '../open.ts';
import { copyTable } from './copy-table.ts';
import {
  describeDatabase,
  type MoveDeps,
  type MovedTable,
  type MoveResult,
  openSource,
  requireMigrated,
} from './move-database.ts';
import { idLetters, readMark, removeMark, writeMark } from './move-marks.ts';
import { hashOf } from './row-digest.ts';
import { isPair, readStoreMark, writeStoreMark } from './store-marks.ts';
import { readTables } from './table-shape.ts';
import { query, quoted, type TransferDatabase } from './transfer-database.ts';

export interface SplitDeps extends Omit<MoveDeps, 'textIndexes' | 'overwrites'> {
  /** The migrations of a database that contains only the state groups. */
  readonly stateMigrations: readonly Migration[];
  /** Names of the tables of state groups. */
  readonly stateTables: readonly string[];
  /** Name of the row of `number_bounds` that limits the assigned ids of state groups. It is copied with the groups. */
  readonly bound: string;
}

/**
 * Moves the state groups of `source` to the empty database `target`. Like `moveDatabase`, it only copies while a server
 * runs, and may be killed at any point and called again.
 *
 * A server starts with the source alone only before the source is marked as the store `main`, and with both databases
 * only after the mark `incomplete` of the target was removed. The source is marked first, so that at no time both
 * configurations start. The state groups in the source are deleted last.
 * @throws StartFailure when one of the databases is not in the required state; then nothing is changed
 */
export async function splitDatabase(deps: SplitDeps): Promise<MoveResult> {
  const { kind } = deps.target;
  const state: TransferDatabase = {
    kind,
    database: await openMarkedDatabaseExclusively(deps.target, deps, () => {}),
  };
  try {
    const { source: main, isExclusive } = await openSource(deps);
    try {
      return await split(deps, main, state, isExclusive);
    } finally {
      await main.database.close();
    }
  } finally {
    await state.database.close();
  }
}

async function split(
  deps: SplitDeps,
  main: TransferDatabase,
  state: TransferDatabase,
  isExclusive: boolean,
): Promise<MoveResult> {
  const clock = deps.clock ?? systemClock;
  await requireMigrated(main, deps.migrations, 'the source');
  const { setId, isCopied } = await findProgress(deps, main, state);
  if (isCopied && !isExclusive) throw new StartFailure('the databases are split already');
  let tables: MovedTable[] = [];
  if (!isCopied) {
    await writeMark(
      state.database,
      { state: 'incomplete', moveId: setId, other: describeDatabase(deps.source) },
      clock.now(),
    );
    await migrate(state.database, deps.stateMigrations, () => clock.now());
    tables = await copyTables(deps, main, state, isExclusive);
    if (!isExclusive) return { isComplete: false, tables };
    await copyBound(main, state, deps.bound);
    await writeStoreMark(state.database, { store: 'state', setId });
    await writeStoreMark(main.database, { store: 'main', setId });
    await removeMark(state.database);
  }
  await emptyTables(main, deps.stateTables);
  return { isComplete: true, tables };
}

/** How far an earlier call came. */
interface SplitProgress {
  /** As in `StoreMark`; new for the first call. */
  readonly setId: string;
  /** Whether everything was copied, so that only the rows of the source must be deleted. */
  readonly isCopied: boolean;
}

/** @throws StartFailure when the marks of the databases do not allow the split */
async function findProgress(
  deps: SplitDeps,
  main: TransferDatabase,
  state: TransferDatabase,
): Promise<SplitProgress> {
  const mainMoveMark = await readMark(main.database, main.kind);
  if (mainMoveMark)
    throw new StartFailure(
      mainMoveMark.state === 'moved'
        ? `the source was moved to ${mainMoveMark.other}: split that database`
        : `the source is incomplete: finish its ${mainMoveMark.state === 'restoring' ? 'restore' : 'move'} from ${mainMoveMark.other} first`,
    );
  const mainMark = await readStoreMark(main);
  const stateMark = await readStoreMark(state);
  const stateMoveMark = await readMark(state.database, state.kind);
  if (mainMark) {
    if (!isPair(mainMark, stateMark))
      throw new StartFailure('the state groups were already moved to another database');
    return { setId: mainMark.setId, isCopied: stateMoveMark === undefined };
  }
  if (stateMoveMark?.state === 'incomplete' && stateMoveMark.other === describeDatabase(deps.source))
    return { setId: stateMoveMark.moveId, isCopied: false };
  if (stateMoveMark || (await appliedMigrations(state.database, state.kind)).length > 0)
    throw new StartFailure('the database of the data store state is in use: give an empty one');
  return { setId: randomLetters(deps.randomness, idLetters), isCopied: false };
}

/** Copies the tables of state groups from one database to the other, and compares all rows. */
export async function copyTables(
  deps: Pick<SplitDeps, 'stateTables' | 'onProgress'>,
  source: TransferDatabase,
  target: TransferDatabase,
  isExclusive: boolean,
): Promise<MovedTable[]> {
  const shapes = await readTables(source, (name) => deps.stateTables.includes(name));
  let totalRows = 0;
  for (const { name } of shapes) {
    const [row] = await query(source, `select count(*) as rows from ${quoted(name)}`);
    totalRows += Number(row?.['rows']);
  }
  let rows = 0;
  const tables: MovedTable[] = [];
  for (const table of shapes) {
    const { name } = table;
    const onRows = (copiedRows: number) => {
      rows += copiedRows;
      deps.onProgress({ table: name, rows, totalRows: Math.max(rows, totalRows) });
    };
    const digest = await copyTable({ source, target, table, isExclusive, onRows });
    tables.push({ name, rows: digest.rows, hash: hashOf(digest) });
  }
  return tables;
}

/** Copies a row of `number_bounds`, which limits the assigned ids, unless the target has a higher limit. */
export async function copyBound(
  source: TransferDatabase,
  target: TransferDatabase,
  name: string,
): Promise<void> {
  const [row] = await query(source, 'select bound from number_bounds where name = ?', [name]);
  await target.database.batch([
    {
      sql: `insert into number_bounds (name, bound) values (?, ?)
        on conflict (name) do update set bound = excluded.bound where number_bounds.bound < excluded.bound`,
      rows: [[name, Number(row?.['bound'] ?? 0)]],
    },
  ]);
}

/** Deletes all rows of these tables. */
async function emptyTables({ database, kind }: TransferDatabase, names: readonly string[]): Promise<void> {
  const list = names.map(quoted);
  const statements =
    kind === 'postgres' ? [`truncate ${list.join(', ')}`] : list.map((name) => `delete from ${name}`);
  await database.transaction(async (writer) => {
    for (const statement of statements) await writer.executeQuery(CompiledQuery.raw(statement, []));
  });
}
