import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { CompiledQuery } from 'kysely';
import { type Clock, systemClock } from '../../clock.ts';
import { type Randomness, randomLetters } from '../../randomness.ts';
import { StartFailure } from '../../start-failure.ts';
import type { Migration } from '../database.ts';
import { DatabaseInUse } from '../errors.ts';
import { appliedMigrations, migrate } from '../migrate.ts';
import {
  type DatabaseEnvironment,
  type DatabaseOptions,
  openDatabase,
  openMarkedDatabaseExclusively,
} from '../open.ts';
import { copyTable } from './copy-table.ts';
import { idLetters, type MoveMark, readMark, removeMark, writeMark } from './move-marks.ts';
import { hashOf } from './row-digest.ts';
import { raiseIdentities } from './sequences.ts';
import { readStoreMark } from './store-marks.ts';
import { readTables, type TableShape } from './table-shape.ts';
import { copyTextIndex, type TextIndex } from './text-index.ts';
import { query, quoted, type TransferDatabase } from './transfer-database.ts';

export interface MoveDeps extends DatabaseEnvironment {
  readonly source: DatabaseOptions;
  readonly target: DatabaseOptions;
  /** All migrations of this version of the program; both databases have exactly these. */
  readonly migrations: readonly Migration[];
  readonly textIndexes: readonly TextIndex[];
  readonly randomness: Randomness;
  /**
   * Whether to replace the contents of a target that were moved away earlier (as when moving back), or that an
   * unfinished move or restore has left.
   */
  readonly overwrites: boolean;
  onProgress(progress: MoveProgress): void;
}

type MoveSource = Pick<MoveDeps, 'source' | 'log' | 'clock'>;

export interface MoveProgress {
  /** The table that is being copied. */
  readonly table: string;
  /** Rows that were compared or copied, of all tables. */
  readonly rows: number;
  readonly totalRows: number;
}

export interface MovedTable {
  readonly name: string;
  readonly rows: number;
  /** A hash of the contents that does not depend on the kind of the database; absent for full-text indexes. */
  readonly hash?: string;
}

export interface MoveResult {
  /** False when a server used the source: call the move again after that server has stopped. */
  readonly isComplete: boolean;
  readonly tables: readonly MovedTable[];
}

/**
 * Moves all contents to another database. While a server uses the source, the call only copies: a later call, with the
 * server stopped, compares all rows and copies the changed ones. The process may be killed at any point, and the move
 * called again.
 *
 * At no point can servers start on both databases. The target is marked as incomplete before any other write to it; the
 * source is marked as moved when both are equal, and the mark of the target is removed after that.
 * @throws StartFailure when one of the databases is not in the required state; then nothing is changed
 */
export async function moveDatabase(deps: MoveDeps): Promise<MoveResult> {
  const { source: from, target: to } = deps;
  if (isSame(from, to)) throw new StartFailure('both configurations name the same database');
  if (from.kind === 'sqlite' && !existsSync(from.path))
    throw new StartFailure(`there is no database ${from.path}`);
  const target: TransferDatabase = {
    kind: to.kind,
    database: await openMarkedDatabaseExclusively(to, deps, () => {}),
  };
  try {
    const { source, isExclusive } = await openSource(deps);
    try {
      return await move(deps, source, target, isExclusive);
    } finally {
      await source.database.close();
    }
  } finally {
    await target.database.close();
  }
}

/** Milliseconds to wait for a server that is stopping. */
const claimTimeout = 500;

/** Opens the source, exclusively unless a server uses it. */
export async function openSource(
  deps: MoveSource,
): Promise<{ readonly source: TransferDatabase; readonly isExclusive: boolean }> {
  const { kind } = deps.source;
  try {
    const database = await openMarkedDatabaseExclusively({ ...deps.source, claimTimeout }, deps, () => {});
    return { source: { kind, database }, isExclusive: true };
  } catch (error) {
    if (!(error instanceof DatabaseInUse)) throw error;
    return { source: { kind, database: await openDatabase(deps.source, deps) }, isExclusive: false };
  }
}

async function move(
  deps: MoveDeps,
  source: TransferDatabase,
  target: TransferDatabase,
  isExclusive: boolean,
): Promise<MoveResult> {
  const { clock = systemClock } = deps;
  await requireMigrated(source, deps.migrations, 'the source');
  const mark = await markFor(deps, source, target);
  await writeMark(target.database, mark, clock.now());
  await migrate(target.database, deps.migrations, () => clock.now());
  const tables = await copyAll(deps, source, target, isExclusive);
  if (!isExclusive) return { isComplete: false, tables };
  await raiseIdentities(target);
  await analyze(target);
  await finish(deps, source, target, mark.moveId, clock);
  return { isComplete: true, tables };
}

/**
 * Decides whether the target may be filled.
 * @returns the mark that the target has until the move is complete
 * @throws StartFailure when the marks of the databases do not allow this move
 */
async function markFor(
  deps: MoveDeps,
  source: TransferDatabase,
  target: TransferDatabase,
): Promise<MoveMark> {
  const sourceMark = await readMark(source.database, source.kind);
  const targetMark = await readMark(target.database, target.kind);
  const other = describeDatabase(deps.source);
  for (const [name, side] of Object.entries({ source, target })) {
    const mark = await readStoreMark(side);
    if (mark)
      throw new StartFailure(
        `the ${name} has only the data store ${mark.store} of a server with two databases, which cannot be moved`,
      );
  }
  if (sourceMark && sourceMark.state !== 'moved')
    throw new StartFailure(
      `the source is itself incomplete: finish its ${sourceMark.state === 'restoring' ? 'restore' : 'move'} from ${sourceMark.other} first`,
    );
  if (sourceMark?.state === 'moved') {
    if (targetMark?.state === 'incomplete' && targetMark.moveId === sourceMark.moveId) return targetMark;
    throw new StartFailure(`the source was already moved to ${sourceMark.other}`);
  }
  const fresh: MoveMark = { state: 'incomplete', moveId: randomLetters(deps.randomness, idLetters), other };
  if (targetMark === undefined) {
    if ((await appliedMigrations(target.database, target.kind)).length > 0)
      throw new StartFailure('the target is in use as a database of Hearth: give an empty one');
    return fresh;
  }
  if (targetMark.state === 'incomplete' && targetMark.other === other) return targetMark;
  if (deps.overwrites) return fresh;
  throw new StartFailure(
    targetMark.state === 'moved'
      ? `the target has the outdated contents that were moved to ${targetMark.other}: give --overwrite to replace them`
      : `the target has the contents of an unfinished ${targetMark.state === 'restoring' ? 'restore' : 'move'} from ${targetMark.other}: give --overwrite to replace them`,
  );
}

async function copyAll(
  deps: MoveDeps,
  source: TransferDatabase,
  target: TransferDatabase,
  isExclusive: boolean,
): Promise<MovedTable[]> {
  const names = deps.textIndexes.map(({ name }) => name);
  // On SQLite an index consists of several tables, whose names begin with its name.
  const isCopied = (table: string) => !names.some((name) => table === name || table.startsWith(`${name}_`));
  const tables = await readTables(source, isCopied);
  requireSameColumns(tables, await readTables(target, isCopied));
  let totalRows = 0;
  for (const name of [...tables.map((table) => table.name), ...names])
    totalRows += await countOf(source, name);
  let rows = 0;
  const counting = (table: string) => (more: number) => {
    rows += more;
    deps.onProgress({ table, rows, totalRows: Math.max(rows, totalRows) });
  };
  const moved: MovedTable[] = [];
  for (const table of tables) {
    const { name } = table;
    const digest = await copyTable({ source, target, table, isExclusive, onRows: counting(name) });
    moved.push({ name, rows: digest.rows, hash: hashOf(digest) });
  }
  for (const index of deps.textIndexes) {
    const { name } = index;
    const count = await copyTextIndex({ source, target, index, isExclusive, onRows: counting(name) });
    moved.push({ name, rows: count });
  }
  return moved;
}

/**
 * Marks the source as moved, and then lets servers start on the target. After an interruption between the two steps,
 * the next call repeats both.
 */
async function finish(
  deps: MoveDeps,
  source: TransferDatabase,
  target: TransferDatabase,
  moveId: string,
  clock: Clock,
): Promise<void> {
  const mark: MoveMark = { state: 'moved', moveId, other: describeDatabase(deps.target) };
  await writeMark(source.database, mark, clock.now());
  await removeMark(target.database);
}

/**
 * Checks that a database has exactly the schema of this version.
 * @param name names the database in the error
 * @throws StartFailure when it has another schema
 */
export async function requireMigrated(
  { database, kind }: TransferDatabase,
  migrations: readonly Migration[],
  name: string,
): Promise<void> {
  const applied = new Set(await appliedMigrations(database, kind));
  const known = migrations.filter((migration) => applied.has(migration.name));
  if (known.length === applied.size && known.length === migrations.length) return;
  if (applied.size === 0) throw new StartFailure(`${name} is not a database of Hearth`);
  throw new StartFailure(
    known.length < applied.size
      ? `${name} has the schema of a newer release: use the command of that release`
      : `${name} has the schema of an older release: start the server of this release on it once, then repeat the command`,
  );
}

function requireSameColumns(source: readonly TableShape[], target: readonly TableShape[]): void {
  const columnsOf = (tables: readonly TableShape[]) =>
    new Map(tables.map(({ name, columns }) => [name, columns.map((column) => column.name).sort()]));
  if (!isDeepStrictEqual(columnsOf(source), columnsOf(target)))
    throw new Error('the tables of both databases differ although their migrations are the same');
}

async function countOf(side: TransferDatabase, name: string): Promise<number> {
  const [row] = await query(side, `select count(*) as rows from ${quoted(name)}`);
  return Number(row?.['rows']);
}

/** Updates the statistics by which PostgreSQL plans queries. */
async function analyze({ kind, database }: TransferDatabase): Promise<void> {
  if (kind === 'sqlite') return;
  await database.transaction((writer) => writer.executeQuery(CompiledQuery.raw('analyze', [])));
}

function isSame(one: DatabaseOptions, other: DatabaseOptions): boolean {
  if (one.kind === 'sqlite' && other.kind === 'sqlite') return resolve(one.path) === resolve(other.path);
  return describeDatabase(one) === describeDatabase(other);
}

/**
 * Returns the kind and place of a database, for messages and for `MoveMark.other`. Stored marks are compared with it, so
 * it must stay the same in later versions.
 */
export function describeDatabase(options: DatabaseOptions): string {
  if (options.kind === 'sqlite') return `the SQLite database ${resolve(options.path)}`;
  const { host = 'localhost', port = 5432, database = options.user ?? '' } = options;
  return `the PostgreSQL database ${database} on ${host}, port ${port}`;
}
