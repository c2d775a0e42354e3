import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
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
import { copySqlite, lendPostgres } from './migrated-databases.ts';
import { connectionTo, type PostgresServer, startPostgres } from './postgres-server.ts';

/** Names the environment variable in which the test run says where its PostgreSQL listens. */
export const portVariable = 'HEARTH_TEST_POSTGRES_PORT';

/** Options that a test may want to choose. */
export type DatabaseTuning = Partial<Omit<Extract<DatabaseOptions, { kind: 'sqlite' }>, 'kind' | 'path'>>;

/** Gives a test a database of its own, which is closed and removed after it. */
export interface OpenDatabase {
  /** An empty database with `migrations` applied. */
  (migrations?: readonly Migration[], tuning?: DatabaseTuning): Promise<Database>;
  /** Closes `database` and opens it again, as a restart of the program does. */
  restart(database: Database): Promise<Database>;
  /** Opens `database` a second time, as another process does. Only PostgreSQL lets both write at the same time. */
  openAgain(database: Database): Promise<Database>;
  /** What `database` was opened with, to open it in a child process. */
  optionsOf(database: Database): DatabaseOptions;
  readonly kind: DatabaseOptions['kind'];
}

export interface TestDatabase {
  readonly options: DatabaseOptions;
  remove(): Promise<void>;
}

/** Declares the tests that `declare` declares once for each kind of database. */
export function forEachDatabase(declare: (open: OpenDatabase) => void): void {
  declareOn.sqlite(declare);
  declareOn.postgres(declare);
}

/**
 * The same for tests of whole servers, or of what servers do with each other, whose parts were tried on each kind by
 * themselves: in a thorough run on both, otherwise on one, which another file's tests may not be on.
 *
 * @param file `import.meta.url` of the tests
 */
export function forServerDatabases(file: string, declare: (open: OpenDatabase) => void): void {
  for (const kind of serverDatabases(file)) declareOn[kind](declare);
}

/** On which kinds of database the tests of whole servers in a file run. */
export function serverDatabases(file: string): readonly DatabaseOptions['kind'][] {
  if (isThorough) return ['sqlite', 'postgres'];
  const isEven = Number.parseInt(hash('sha256', basename(file)).slice(0, 2), 16) % 2 === 0;
  return [isEven ? 'sqlite' : 'postgres'];
}

const declareOn = {
  sqlite(declare: (open: OpenDatabase) => void): void {
    describe('on SQLite', () => declare(opener('sqlite', makeFile)));
  },
  postgres(declare: (open: OpenDatabase) => void): void {
    describe('on PostgreSQL', () => {
      let own: PostgresServer | undefined;
      before(async () => {
        if (process.env[portVariable]) return;
        own = await startPostgres();
        process.env[portVariable] = String(own.port);
      });
      const open = opener('postgres', borrowDatabase);
      after(async () => {
        if (!own) return;
        delete process.env[portVariable];
        await own.stop();
      });
      declare(open);
    });
  },
};

/**
 * A place for a database that nobody has opened yet, with `migrations` applied. PostgreSQL must run: see
 * `portVariable`.
 */
export const makeTestDatabase = (
  kind: DatabaseOptions['kind'],
  migrations: readonly Migration[] = [],
): Promise<TestDatabase> => (kind === 'sqlite' ? makeFile(migrations, {}) : borrowDatabase(migrations, {}));

type MakePlace = (migrations: readonly Migration[], tuning: DatabaseTuning) => Promise<TestDatabase>;

function opener(kind: DatabaseOptions['kind'], make: MakePlace): OpenDatabase {
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
    if (!options) throw new Error('this database was not opened here');
    return options;
  };
  const open = async (migrations: readonly Migration[] = [], tuning: DatabaseTuning = {}) => {
    const place = await make(migrations, tuning);
    (inTest ? cleanUp.each : cleanUp.all).push(() => place.remove());
    return openAt(place.options);
  };
  return Object.assign(open, {
    kind,
    optionsOf,
    openAgain: (database: Database) => openAt(optionsOf(database)),
    restart: async (database: Database) => {
      await database.close();
      return openAt(optionsOf(database));
    },
  });
}

/** Last come, first served: databases are closed before their place is removed. */
async function runAll(tasks: (() => Promise<void>)[]): Promise<void> {
  for (const task of tasks.splice(0).reverse()) await task();
}

async function makeFile(migrations: readonly Migration[], tuning: DatabaseTuning): Promise<TestDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-sqlite-'));
  const path = join(folder, 'test.db');
  if (migrations.length > 0) await copySqlite(migrations, path);
  return {
    options: { kind: 'sqlite', path, flush: 'never', ...tuning },
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function borrowDatabase(
  migrations: readonly Migration[],
  { idleLimit }: DatabaseTuning,
): Promise<TestDatabase> {
  const port = Number(process.env[portVariable]);
  const { name, giveBack } = await lendPostgres(migrations, port);
  const options: DatabaseOptions = { kind: 'postgres', ...connectionTo(port, name) };
  return { options: idleLimit === undefined ? options : { ...options, idleLimit }, remove: giveBack };
}
