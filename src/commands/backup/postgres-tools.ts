import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatabaseOptions } from '../../kernel/database/index.ts';
import { CommandFailure } from '../failure.ts';

type PostgresOptions = Extract<DatabaseOptions, { kind: 'postgres' }>;

/** Options of the archive that `dumpPostgres` writes. */
export interface Dump {
  /** Path of the archive: a directory if `hasFilePerTable`, otherwise a file. */
  readonly file: string;
  /** Whether the archive is a directory with an uncompressed file for each table. */
  readonly hasFilePerTable: boolean;
  /** Id of an exported snapshot; by default `pg_dump` takes its own snapshot. */
  readonly snapshot?: string;
}

/** Writes an archive of the database that `pg_restore` reads; the database may be in use. */
export async function dumpPostgres(
  options: PostgresOptions,
  { file, hasFilePerTable, snapshot }: Dump,
): Promise<void> {
  const format = hasFilePerTable ? ['--format=directory', '--compress=0'] : ['--format=custom'];
  const snapshotFlag = snapshot === undefined ? [] : [`--snapshot=${snapshot}`];
  await run(
    'pg_dump',
    [...format, ...snapshotFlag, '--no-owner', '--no-privileges', `--file=${file}`],
    options,
  );
}

/**
 * Restores an archive into a database that is empty except for the table `database_moves`, which stays as it is. When
 * the restore fails, the database is unchanged.
 */
export async function restorePostgres(options: PostgresOptions, file: string): Promise<void> {
  const database = options.database ?? options.user ?? 'hearth';
  const contents = await run('pg_restore', ['--list', file], options, 'pipe');
  const folder = mkdtempSync(join(tmpdir(), 'hearth-restore-'));
  try {
    const list = join(folder, 'contents');
    const lines = contents.split('\n').filter((line) => !line.includes(' database_moves '));
    writeFileSync(list, lines.join('\n'));
    const parameters = ['--no-owner', '--no-privileges', '--exit-on-error', '--single-transaction'];
    const sourceAndTarget = [`--use-list=${list}`, `--dbname=${database}`, file];
    await run('pg_restore', [...parameters, ...sourceAndTarget], options);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Runs a tool of PostgreSQL with the connection settings of the server.
 * @param output whether its standard output is returned (`pipe`) or shown
 */
async function run(
  tool: string,
  parameters: readonly string[],
  options: PostgresOptions,
  output: 'inherit' | 'pipe' = 'inherit',
): Promise<string> {
  const child = spawn(tool, parameters, {
    env: { ...process.env, ...environmentOf(options) },
    stdio: ['ignore', output, 'inherit'],
  });
  let text = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const failure = await new Promise<string | undefined>((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        new CommandFailure(
          error.code === 'ENOENT'
            ? `${tool} is not installed: install the client tools of your PostgreSQL (Debian: postgresql-client)`
            : `${tool} cannot be run: ${error.message}`,
        ),
      ),
    );
    child.once('close', (code, signal) =>
      resolve(signal ? `was ended by ${signal}` : code === 0 ? undefined : `failed with exit code ${code}`),
    );
  });
  if (failure !== undefined) throw new CommandFailure(`${tool} ${failure}: see above`);
  return text;
}

/**
 * Returns the settings as environment variables of libpq (its manual, "Environment Variables"): other users of the machine
 * can see the arguments of a process, and not its environment.
 */
function environmentOf({
  host,
  port,
  user,
  password,
  database,
  ssl,
  toolEnvironment,
}: PostgresOptions): Record<string, string> {
  return {
    ...(host !== undefined && { PGHOST: host }),
    ...(port !== undefined && { PGPORT: String(port) }),
    ...(user !== undefined && { PGUSER: user }),
    ...(password !== undefined && { PGPASSWORD: password }),
    ...(database !== undefined && { PGDATABASE: database }),
    ...(ssl && { PGSSLMODE: 'require', ...toolEnvironment }),
  };
}
