import { createHash, randomUUID } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { pino } from 'pino';
import {
  type DatabaseOptions,
  type Migration,
  migrate,
  openDatabase,
} from '../../../src/kernel/database/index.ts';
import { makeDatabaseFolder } from './database-folder.ts';
import { connectionTo } from './postgres-server.ts';
import { restoreContents, saveContents } from './restored-postgres.ts';

/**
 * Databases with migrations applied, prepared once and copied for each test: copying takes a fraction of the
 * time of migrating. The processes of a test run share them.
 */

/** The environment variable with the folder of a test run's migrated SQLite files. */
export const folderVariable = 'HEARTH_TEST_MIGRATED_DATABASES';

/** Makes the folder of a test run. @returns its path, for `folderVariable`; the caller removes it */
export const makeFolder = (): string => makeDatabaseFolder('hearth-migrated-');

/** The databases that this process has prepared or is preparing, by name. */
const preparing = new Map<string, Promise<unknown>>();

/** Writes a SQLite database with `migrations` applied to `path`. */
export async function copySqlite(migrations: readonly Migration[], path: string): Promise<void> {
  const original = join(folder(), `${nameOf(migrations)}.db`);
  await once(original, () => prepareSqlite(migrations, original));
  copyFileSync(original, path);
}

/** A PostgreSQL database that one test uses at a time. */
export interface LentDatabase {
  readonly name: string;
  /** Ends all connections to it and makes it available to the next test. */
  giveBack(): Promise<void>;
}

let copyCount = 0;

/** Returns a database of the PostgreSQL at `port` with `migrations` applied. */
export async function lendPostgres(migrations: readonly Migration[], port: number): Promise<LentDatabase> {
  const original = `migrated_${nameOf(migrations)}`;
  const free = join(folder(), `free-${port}-${original}`);
  const name = takeFree(free) ?? (await copyPostgres(migrations, port, original));
  const giveBack = async () => {
    if (await restoreContents(port, name)) addFree(free, name);
    else await administer(port, `drop database ${name} with (force)`);
  };
  return { name, giveBack };
}

/** Adds a restored database to those that all processes of the test run may take: each is an empty file in `free`. */
function addFree(free: string, name: string): void {
  mkdirSync(free, { recursive: true });
  writeFileSync(join(free, name), '');
}

/** Takes a restored database for this process alone. @returns its name; undefined when none is free */
function takeFree(free: string): string | undefined {
  if (!existsSync(free)) return undefined;
  return readdirSync(free).find((name) => {
    try {
      unlinkSync(join(free, name));
      return true;
    } catch (error) {
      // Another process was faster.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
      throw error;
    }
  });
}

async function copyPostgres(
  migrations: readonly Migration[],
  port: number,
  original: string,
): Promise<string> {
  await once(`${port}/${original}`, () => preparePostgres(migrations, port, original));
  copyCount += 1;
  const name = `test_${process.pid}_${copyCount}`;
  await administer(port, `create database ${name} template ${original} strategy file_copy`);
  return name;
}

/** Runs one statement in the maintenance database `postgres`. */
export async function administer(port: number, statement: string): Promise<void> {
  const client = new Client(connectionTo(port));
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

async function prepareSqlite(migrations: readonly Migration[], original: string): Promise<void> {
  if (existsSync(original)) return;
  // Another process may prepare the same database: the last rename replaces the file by an equal one.
  const path = `${original}.${randomUUID()}`;
  await apply(migrations, { kind: 'sqlite', path, flush: 'never' });
  renameSync(path, original);
}

async function preparePostgres(
  migrations: readonly Migration[],
  port: number,
  original: string,
): Promise<void> {
  const client = new Client(connectionTo(port));
  await client.connect();
  try {
    // One process prepares the database and the others wait: PostgreSQL does not copy a database that has connections.
    await client.query('select pg_advisory_lock(hashtext($1))', [original]);
    const { rowCount } = await client.query('select from pg_database where datname = $1', [original]);
    if (rowCount) return;
    const unfinished = `${original}_unfinished`;
    await client.query(`drop database if exists ${unfinished} with (force)`);
    await client.query(`create database ${unfinished} template template0`);
    await apply(migrations, { kind: 'postgres', ...connectionTo(port, unfinished) });
    await saveContents(port, unfinished);
    await client.query(`alter database ${unfinished} rename to ${original}`);
  } finally {
    await client.end();
  }
}

async function apply(migrations: readonly Migration[], options: DatabaseOptions): Promise<void> {
  const database = await openDatabase(options, { log: pino({ enabled: false }) });
  try {
    await migrate(database, migrations);
  } finally {
    await database.close();
  }
}

function once(key: string, make: () => Promise<unknown>): Promise<unknown> {
  const preparation = preparing.get(key) ?? make();
  preparing.set(key, preparation);
  return preparation;
}

/** A hash of the names and the source text of the migrations. */
const nameOf = (migrations: readonly Migration[]): string =>
  createHash('sha256')
    .update(JSON.stringify(migrations.map(({ name, up }) => [name, String(up)])))
    .digest('hex')
    .slice(0, 32);

let folderOfProcess: string | undefined;

/** The folder of the test run; without a test run, a folder that is removed when this process exits. */
function folder(): string {
  const shared = process.env[folderVariable];
  if (shared) return shared;
  if (!folderOfProcess) {
    const newFolder = makeFolder();
    folderOfProcess = newFolder;
    process.once('exit', () => rmSync(newFolder, { recursive: true, force: true }));
  }
  mkdirSync(folderOfProcess, { recursive: true });
  return folderOfProcess;
}
