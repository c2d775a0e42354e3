import { dirname, resolve } from 'node:path';
import {
  type DatabaseFacts,
  type DatabaseOptions,
  databaseOptions,
  dataStoreEntries,
  inspectDatabase,
  maxConnections,
} from '../../../kernel/database/index.ts';
import { silentLogger } from '../../../kernel/observability/index.ts';
import { ownCommand } from '../../../kernel/process/index.ts';
import { migrations, stateMigrations } from '../../../slices.ts';
import { type Examination, flagsOf } from '../examination.ts';
import { error, type Finding, note, ok, warning } from '../finding.ts';

type DatabaseEntry = Parameters<typeof databaseOptions>[0];
type Inputs = Pick<Examination, 'configuration' | 'clock' | 'paths'>;

/** Maximum difference in milliseconds between the clocks of this machine and of PostgreSQL. */
const maxClockDifference = 2_000;

/** The message of the finding `database-lease` while no server has the database open. */
export const notOpened = 'No server has opened the database for writing.';

/** Checks that the databases are usable and their schemas fit this version, and reports which process writes them. */
export async function checkDatabase(examination: Inputs): Promise<readonly Finding[]> {
  const { main, state } = dataStoreEntries(examination.configuration.database);
  const mainFindings = await checkOne(main, migrations, examination);
  return state === main
    ? mainFindings
    : [...mainFindings, ...(await checkOne(state, stateMigrations, examination))];
}

async function checkOne(
  entry: DatabaseEntry,
  wanted: readonly { readonly name: string }[],
  examination: Inputs,
): Promise<readonly Finding[]> {
  let options: DatabaseOptions;
  try {
    options = databaseOptions(entry);
  } catch (cause) {
    return [error('database-options', messageOf(cause), `${ownCommand} config explain 'database.args'`)];
  }
  const place = describeDatabase(options);
  let facts: DatabaseFacts | undefined;
  try {
    facts = await inspectDatabase(options, silentLogger);
  } catch (cause) {
    return [
      error('database-unreachable', `${place} cannot be read: ${messageOf(cause)}`, fixOf(options, cause)),
    ];
  }
  if (facts === undefined) {
    return [note('database-missing', `${place} does not exist yet; the first start creates it.`)];
  }
  return [
    ok(
      'database',
      `${place} can be read (${options.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'} ${facts.version}).`,
    ),
    ...moveFindings(place, facts),
    ...encodingFindings(options, place, facts),
    ...schemaFindings(place, facts, wanted, examination),
    ...postgresSettings(options, facts, examination),
    facts.writer === undefined
      ? ok('database-lease', notOpened)
      : ok('database-lease', `The database is written by ${facts.writer}.`),
  ];
}

function moveFindings(place: string, { move }: DatabaseFacts): Finding[] {
  if (move === undefined) return [];
  if (move.state === 'moved') {
    const text = `${place} is no longer in use: its contents were moved to ${move.other}, and no server starts on it.`;
    return [error('database-moved', text, 'use the configuration of the other database (option database)')];
  }
  if (move.state === 'restoring') {
    const text = `${place} is incomplete: its restore from ${move.other} was interrupted, and no server starts on it.`;
    return [
      error(
        'database-incomplete',
        text,
        `${ownCommand} restore, with the same directory and flags as before`,
      ),
    ];
  }
  const text = `${place} is incomplete: a move or a split from ${move.other} has not ended, and no server starts on it.`;
  return [
    error(
      'database-incomplete',
      text,
      `${ownCommand} database move (or split), with the same configurations as before`,
    ),
  ];
}

function encodingFindings(options: DatabaseOptions, place: string, facts: DatabaseFacts): Finding[] {
  if (facts.encoding === 'UTF-8' || facts.encoding === 'UTF8') return [];
  const fix =
    options.kind === 'postgres'
      ? `create another database and move the data: createdb --encoding=UTF8 --locale=C --template=template0 --owner=${options.user ?? 'hearth'} NEW`
      : 'restore a backup: the file was not made by this server';
  return [error('database-encoding', `${place} has the encoding ${facts.encoding}; it must be UTF-8.`, fix)];
}

function schemaFindings(
  place: string,
  { applied }: DatabaseFacts,
  wanted: readonly { readonly name: string }[],
  examination: Inputs,
): Finding[] {
  if (applied === undefined || applied.length === 0) {
    return [note('database-empty', `${place} is empty; the first start creates the tables.`)];
  }
  const knownNames = new Set(wanted.map(({ name }) => name));
  const newer = applied.filter((name) => !knownNames.has(name));
  if (newer.length > 0) {
    return [
      error(
        'database-newer',
        `${place} was migrated by a newer version of Hearth, which applied ${newer.join(', ')}.`,
        `start that version, or restore a backup from before the update: ${ownCommand} restore DIRECTORY${flagsOf(examination)}`,
      ),
    ];
  }
  const missing = knownNames.size - applied.length;
  if (missing === 0) return [ok('database-schema', 'All migrations are applied.')];
  return [
    note(
      'database-migrations',
      `The next start applies ${missing} ${missing === 1 ? 'migration' : 'migrations'} of the database. Make a backup first: older versions of Hearth cannot open the database afterwards.`,
      `${ownCommand} backup DIRECTORY${flagsOf(examination)}`,
    ),
  ];
}

function postgresSettings(
  options: DatabaseOptions,
  { collation, now, connections }: DatabaseFacts,
  { clock }: Inputs,
): Finding[] {
  if (options.kind !== 'postgres') return [];
  const findings: Finding[] = [];
  const name = options.database ?? options.user ?? 'hearth';
  if (collation) {
    findings.push(
      warning(
        'database-collation',
        `The collation of the database was created with version ${collation.recorded} of the collation library of the operating system, which now has version ${collation.actual}. Hearth compares texts byte by byte, so its own tables are not affected; PostgreSQL logs a warning at each connection until the new version is recorded.`,
        `psql -d ${name} -c 'ALTER DATABASE "${name}" REFRESH COLLATION VERSION'`,
      ),
    );
  }
  const difference = now === undefined ? 0 : Math.abs(now - clock.now());
  if (difference > maxClockDifference) {
    findings.push(
      warning(
        'database-clock',
        `The clocks of this machine and of PostgreSQL differ by ${Math.round(difference / 1_000)} seconds.`,
        'timedatectl set-ntp true (on both machines)',
      ),
    );
  }
  const needed = maxConnections(options);
  if (connections && connections.maximum < needed) {
    findings.push(
      error(
        'database-connections',
        `PostgreSQL allows ${connections.maximum} connections (max_connections), and this server may open ${needed}.`,
        `lower database.args.cp_max, or: psql -c 'ALTER SYSTEM SET max_connections = ${enoughConnections(needed, connections.open)}' and restart PostgreSQL`,
      ),
    );
  }
  return findings;
}

/**
 * Number of connections that the server leaves to others. PostgreSQL reserves some of them for superusers, and
 * administrators connect with tools.
 */
const spareConnections = 10;

/**
 * Returns the number of connections to advise for PostgreSQL, rounded up to hundreds. This server may open `needed` of
 * them. Other programs, or a second database of this server, have `open` connections open.
 */
function enoughConnections(needed: number, open: number): number {
  return Math.ceil((needed + open + spareConnections) / 100) * 100;
}

/** Names the database as the subject of a sentence, without its password. */
function describeDatabase(options: DatabaseOptions): string {
  return options.kind === 'sqlite'
    ? `The database ${resolve(options.path)}`
    : `The PostgreSQL database ${options.database ?? options.user ?? ''} on ${options.host ?? 'localhost'}`;
}

/** Returns the advice for a failed connection, chosen by its SQLSTATE or the error code of the operating system. */
function fixOf(options: DatabaseOptions, cause: unknown): string {
  if (options.kind === 'sqlite') {
    const path = resolve(options.path);
    return `run this command as the user of the server, or let that user read the file: ls -l ${dirname(path)}. If the file is damaged, restore a backup: ${ownCommand} restore`;
  }
  const { user = 'hearth', database = user, host = 'localhost', port = 5432 } = options;
  const code = String((cause as { code?: unknown }).code ?? '');
  if (code === '3D000') {
    return `createdb --encoding=UTF8 --locale=C --template=template0 --owner=${user} ${database}`;
  }
  if (code === '28P01' || code === '28000') {
    return `check database.args.user and database.args.password, and pg_hba.conf of PostgreSQL; to set the password: psql -c '\\password ${user}'`;
  }
  if (code === '53300')
    return "lower database.args.cp_max, or raise max_connections of PostgreSQL: psql -c 'SHOW max_connections'";
  if (code === '42501') return `psql -d ${database} -c 'GRANT ALL ON SCHEMA public TO "${user}"'`;
  return `check database.args.host and database.args.port (${host}, ${port}), and whether PostgreSQL runs: pg_isready -h ${host} -p ${port}`;
}

const messageOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause));
