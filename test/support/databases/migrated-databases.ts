import { createHash, randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { pino } from 'pino';
import {
  type DatabaseOptions,
  type Migration,
  migrate,
  openDatabase,
} from '../../../src/kernel/database/index.ts';
import { connectionTo } from './postgres-server.ts';
import { restoreContents, saveContents } from './restored-postgres.ts';

/**
 * Databases with migrations applied, kept to be copied: most tests begin with one, and copying takes a fraction of the
 * time of migrating. A test run shares them between its processes.
 */

/** Names the environment variable with the folder of a test run's migrated SQLite files. */
export const folderVariable = 'HEARTH_TEST_MIGRATED_DATABASES';

/** Makes the folder of a test run. @returns its path, for `folderVariable` and to be removed */
export const makeFolder = (): string => mkdtempSync(join(tmpdir(), 'hearth-migrated-'));

/** What has been asked for in this process, by the name of the copy that is kept. */
const kept = new Map<string, Promise<unknown>>();

/** Makes `path` a SQLite database with `migrations` applied. */
export async function copySqlite(migrations: readonly Migration[], path: string): Promise<void> {
  const original = join(folder(), `${nameOf(migrations)}.db`);
  await once(original, () => keepSqlite(migrations, original));
  copyFileSync(original, path);
}

/** A database of PostgreSQL that belongs to one test. */
export interface LentDatabase {
  readonly name: string;
  /** Ends everybody's connections to it. It may be lent again, as if it were new. */
  giveBack(): Promise<void>;
}

/** Emptied databases of this process, by what was migrated. */
const emptied = new Map<string, string[]>();
let copies = 0;

/** Lends a database of the PostgreSQL at `port` with `migrations` applied. */
export async function lendPostgres(migrations: readonly Migration[], port: number): Promise<LentDatabase> {
  const original = `migrated_${nameOf(migrations)}`;
  const key = `${port}/${original}`;
  const waiting = emptied.get(key) ?? [];
  emptied.set(key, waiting);
  const name = waiting.pop() ?? (await copyPostgres(migrations, port, original));
  const giveBack = async () => {
    if (await restoreContents(port, name)) waiting.push(name);
    else await administer(port, `drop database ${name} with (force)`);
  };
  return { name, giveBack };
}

async function copyPostgres(
  migrations: readonly Migration[],
  port: number,
  original: string,
): Promise<string> {
  await once(`${port}/${original}`, () => keepPostgres(migrations, port, original));
  copies += 1;
  const name = `test_${process.pid}_${copies}`;
  await administer(port, `create database ${name} template ${original} strategy file_copy`);
  return name;
}

/** Runs one statement in the database that is always there. */
export async function administer(port: number, statement: string): Promise<void> {
  const client = new Client(connectionTo(port));
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

async function keepSqlite(migrations: readonly Migration[], original: string): Promise<void> {
  if (existsSync(original)) return;
  // Another process may do the same: the last to come replaces a file by one that is alike.
  const path = `${original}.${randomUUID()}`;
  await apply(migrations, { kind: 'sqlite', path, flush: 'never' });
  renameSync(path, original);
}

async function keepPostgres(migrations: readonly Migration[], port: number, original: string): Promise<void> {
  const client = new Client(connectionTo(port));
  await client.connect();
  try {
    // One process makes it, the others wait: a database cannot be copied while somebody is connected to it.
    await client.query('select pg_advisory_lock(hashtext($1))', [original]);
    const { rowCount } = await client.query('select from pg_database where datname = $1', [original]);
    if (rowCount) return;
    const growing = `${original}_growing`;
    await client.query(`drop database if exists ${growing} with (force)`);
    await client.query(`create database ${growing} template template0`);
    await apply(migrations, { kind: 'postgres', ...connectionTo(port, growing) });
    await saveContents(port, growing);
    await client.query(`alter database ${growing} rename to ${original}`);
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
  const found = kept.get(key) ?? make();
  kept.set(key, found);
  return found;
}

/** Migrations of the same name and text are the same. */
const nameOf = (migrations: readonly Migration[]): string =>
  createHash('sha256')
    .update(JSON.stringify(migrations.map(({ name, up }) => [name, String(up)])))
    .digest('hex')
    .slice(0, 32);

let ownFolder: string | undefined;

/** That of the test run; without one, a folder that goes with the process. */
function folder(): string {
  const shared = process.env[folderVariable];
  if (shared) return shared;
  if (!ownFolder) {
    const made = makeFolder();
    ownFolder = made;
    process.once('exit', () => rmSync(made, { recursive: true, force: true }));
  }
  mkdirSync(ownFolder, { recursive: true });
  return ownFolder;
}
