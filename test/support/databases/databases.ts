import { hash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, afterEach, before, beforeEach, describe } from 'node:test';
import { pino } from 'pino';
import {
  type Database,
  type DatabaseOptions,
  type Migration,
  openDatabase,
} from '../../../src/kernel/database/index.ts';
import { isThorough } from '../inputs/thoroughness.ts';
import { makeDatabaseFolder } from './database-folder.ts';
import { copySqlite, lendPostgres } from './migrated-databases.ts';
import { connectionTo, type PostgresServer, startPostgres } from './postgres-server.ts';

/** The environment variable with the port of the test run's PostgreSQL. */
export const portVariable = 'HEARTH_TEST_POSTGRES_PORT';

/** Database options that a test can choose. */
export type DatabaseTuning = Partial<Omit<Extract<DatabaseOptions, { kind: 'sqlite' }>, 'kind' | 'path'>>;

/**
 * Opens databases. A database that is opened in a test is closed and removed after the test, another one after all
 * tests of the group.
 */
export interface OpenDatabase {
  /** Opens an empty database with `migrations` applied. */
  (migrations?: readonly Migration[], tuning?: DatabaseTuning): Promise<Database>;
  /** Closes `database` and opens it again, as a restart of the server does. */
  restart(database: Database): Promise<Database>;
  /**
   * Opens `database` a second time, as another process does. Only PostgreSQL allows both to write at the same
   * time.
   */
  openAgain(database: Database): Promise<Database>;
  /** Returns the options that `database` was opened with, to open it in a child process. */
  optionsOf(database: Database): DatabaseOptions;
  /** Runs `close` after the test, before the databases that are open now are closed; absent in benchmarks. */
  closeFirst?(close: () => Promise<void>): void;
  readonly kind: DatabaseOptions['kind'];
}

export interface TestDatabase {
  readonly options: DatabaseOptions;
  remove(): Promise<void>;
}

/**
 * Declares the tests of `declare` once for each kind of database, in every run. For tests of `kernel/`, because the
 * kernel makes both kinds behave alike.
 */
export function forEachDatabase(declare: (open: OpenDatabase) => void): void {
  declareOn.sqlite(declare);
  declareOn.postgres(declare);
}

/** Declares the tests of `declare` for PostgreSQL only: for behaviour that SQLite does not have. */
export function forPostgres(declare: (open: OpenDatabase) => void): void {
  declareOn.postgres(declare);
}

/**
 * Declares tests of slices and of whole servers once for each of the `selectedDatabases`.
 * @param file `import.meta.url` of the tests
 */
export function forSelectedDatabases(file: string, declare: (open: OpenDatabase) => void): void {
  for (const kind of selectedDatabases(file)) declareOn[kind](declare);
}

/**
 * Returns the kinds of database for the tests of a file: in a thorough run both, otherwise one. A hash of the file name
 * divides the files into parts. One part runs on PostgreSQL: by default one of 20, because the same tests take three
 * times as long on PostgreSQL. `HEARTH_TEST_POSTGRES_PART=3/10` selects the third of ten parts.
 * @param file `import.meta.url` of the tests
 */
export function selectedDatabases(file: string): readonly DatabaseOptions['kind'][] {
  if (isThorough) return ['sqlite', 'postgres'];
  const [part = 0, parts = 1] = (process.env['HEARTH_TEST_POSTGRES_PART'] ?? '1/20').split('/').map(Number);
  const number = Number.parseInt(hash('sha256', basename(file)).slice(0, 8), 16);
  return [number % parts === part - 1 ? 'postgres' : 'sqlite'];
}

const declareOn = {
  sqlite(declare: (open: OpenDatabase) => void): void {
    describe('on SQLite', () => declare(opener('sqlite', makeSqlite)));
  },
  postgres(declare: (open: OpenDatabase) => void): void {
    describe('on PostgreSQL', () => {
      let ownServer: PostgresServer | undefined;
      before(async () => {
        if (process.env[portVariable]) return;
        ownServer = await startPostgres();
        process.env[portVariable] = String(ownServer.port);
      });
      const open = opener('postgres', borrowPostgres);
      after(async () => {
        if (!ownServer) return;
        delete process.env[portVariable];
        await ownServer.stop();
      });
      declare(open);
    });
  },
};

/**
 * Makes a database that is not open yet, with `migrations` applied. PostgreSQL must be running
 * (`portVariable`).
 */
export const makeTestDatabase = (
  kind: DatabaseOptions['kind'],
  migrations: readonly Migration[] = [],
): Promise<TestDatabase> => (kind === 'sqlite' ? makeSqlite(migrations, {}) : borrowPostgres(migrations, {}));

type MakeTestDatabase = (migrations: readonly Migration[], tuning: DatabaseTuning) => Promise<TestDatabase>;

function opener(kind: DatabaseOptions['kind'], make: MakeTestDatabase): OpenDatabase {
  const opened = new Map<Database, DatabaseOptions>();
  const cleanUp = { all: [] as (() => Promise<void>)[], each: [] as (() => Promise<void>)[] };
  let inTest = false;
  beforeEach(() => {
    inTest = true;
  });
  afterEach(async () => {
    inTest = false;
    await runAll(cleanUp.each);
  });
  after(() => runAll(cleanUp.all));

  const openAt = async (options: DatabaseOptions) => {
    const database = await openDatabase(options, { log: pino({ enabled: false }) });
    opened.set(database, options);
    (inTest ? cleanUp.each : cleanUp.all).push(() => database.close());
    return database;
  };
  const optionsOf = (database: Database) => {
    const options = opened.get(database);
    if (!options) throw new Error('this database was not opened by this opener');
    return options;
  };
  const open = async (migrations: readonly Migration[] = [], tuning: DatabaseTuning = {}) => {
    const testDatabase = await make(migrations, tuning);
    (inTest ? cleanUp.each : cleanUp.all).push(() => testDatabase.remove());
    return openAt(testDatabase.options);
  };
  return Object.assign(open, {
    kind,
    optionsOf,
    closeFirst: (close: () => Promise<void>) => void (inTest ? cleanUp.each : cleanUp.all).push(close),
    openAgain: (database: Database) => openAt(optionsOf(database)),
    restart: async (database: Database) => {
      await database.close();
      return openAt(optionsOf(database));
    },
  });
}

/** Runs the tasks in reverse order, so that each database is closed before it is removed. */
async function runAll(tasks: (() => Promise<void>)[]): Promise<void> {
  for (const task of tasks.splice(0).reverse()) await task();
}

async function makeSqlite(migrations: readonly Migration[], tuning: DatabaseTuning): Promise<TestDatabase> {
  const folder = makeDatabaseFolder('hearth-sqlite-');
  const path = join(folder, 'test.db');
  if (migrations.length > 0) await copySqlite(migrations, path);
  return {
    options: { kind: 'sqlite', path, flush: 'never', ...tuning },
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function borrowPostgres(
  migrations: readonly Migration[],
  { idleLimit }: DatabaseTuning,
): Promise<TestDatabase> {
  const port = Number(process.env[portVariable]);
  const { name, giveBack } = await lendPostgres(migrations, port);
  const options: DatabaseOptions = { kind: 'postgres', ...connectionTo(port, name) };
  return { options: idleLimit === undefined ? options : { ...options, idleLimit }, remove: giveBack };
}
