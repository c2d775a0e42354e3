import {
  appliedMigrations,
  type Database,
  type DatabaseOptions,
  describeDatabase,
  type MoveMark,
  openDatabase,
  openMarkedDatabaseExclusively,
  readMark,
  removeMark,
  writeMark,
} from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { CommandFailure } from '../failure.ts';
import { restorePostgres } from './postgres-tools.ts';

type PostgresOptions = Extract<DatabaseOptions, { kind: 'postgres' }>;

/** An archive of `pg_dump`, and the database to restore it into. */
export interface Archive {
  readonly options: PostgresOptions;
  readonly file: string;
  /** Prepares the restored database for a server; may run again after an interruption. */
  readonly finish: (database: Database) => Promise<void>;
}

/**
 * Restores archives into empty databases, and prepares the databases. Until all databases are ready, each database has
 * a mark. The mark prevents a server from starting with the database. After an interruption, another call with the same
 * mark continues.
 * @param mark `moveId` names the backup, `other` is the directory of the backup
 * @throws CommandFailure when a database is not empty, or is part of a move or of the restore of another backup
 */
export async function restoreArchives(
  archives: readonly Archive[],
  mark: Pick<MoveMark, 'moveId' | 'other'>,
  now: number,
): Promise<void> {
  const progress = await Promise.all(archives.map(({ options }) => progressOf(options, mark.moveId)));
  const isContinued = progress.includes('restored');
  for (const [index, { options }] of archives.entries()) {
    const state = progress[index];
    if (state === 'other' || (state === 'ready' && !isContinued)) throw notEmpty(options);
  }
  const isEmpty = (_: Archive, index: number) => progress[index] === 'empty';
  for (const { options } of archives.filter(isEmpty))
    await using(openDatabase, options, (database) =>
      writeMark(database, { ...mark, state: 'restoring' }, now),
    );
  for (const { options, file } of archives.filter(isEmpty)) await restorePostgres(options, file);
  for (const { options, finish } of archives) await using(openExclusively, options, finish);
  for (const { options } of archives) await using(openExclusively, options, removeMark);
}

/**
 * `empty`: the database has no contents. `restored`: the database has the contents of this backup, and the mark.
 * `ready`: it has contents and no mark. `other`: its mark is of another backup or of a move.
 */
type Progress = 'empty' | 'restored' | 'ready' | 'other';

function progressOf(options: PostgresOptions, restoreId: string): Promise<Progress> {
  return using(openDatabase, options, async (database) => {
    const hasTables = (await appliedMigrations(database, options.kind)).length > 0;
    const mark = await readMark(database, options.kind);
    if (!mark) return hasTables ? 'ready' : 'empty';
    if (mark.state !== 'restoring') return 'other';
    if (!hasTables) return 'empty';
    return mark.moveId === restoreId ? 'restored' : 'other';
  });
}

function notEmpty(options: PostgresOptions): CommandFailure {
  const { user = 'hearth', database = user } = options;
  return new CommandFailure(
    `${describeDatabase(options)} is not empty. Rename or drop it, and make an empty one: createdb --encoding=UTF8 --locale=C --template=template0 --owner=${user} ${database}`,
  );
}

const openExclusively = (options: DatabaseOptions, environment: Parameters<typeof openDatabase>[1]) =>
  openMarkedDatabaseExclusively(options, environment, () => {});

async function using<T>(
  open: typeof openDatabase,
  options: PostgresOptions,
  run: (database: Database) => Promise<T>,
): Promise<T> {
  const database = await open(options, { log: silentLogger });
  try {
    return await run(database);
  } finally {
    await database.close();
  }
}
