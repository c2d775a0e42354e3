import { spawn } from 'node:child_process';
import type { DatabaseOptions } from '../../kernel/database/index.ts';
import { CommandFailure } from '../failure.ts';

type PostgresOptions = Extract<DatabaseOptions, { kind: 'postgres' }>;

/** Writes an archive of the database that `pg_restore` reads; the database may be in use. */
export async function dumpPostgres(options: PostgresOptions, file: string): Promise<void> {
  await run('pg_dump', ['--format=custom', '--no-owner', '--no-privileges', `--file=${file}`], options);
}

/** Restores an archive into an empty database; when it fails, the database is unchanged. */
export async function restorePostgres(options: PostgresOptions, file: string): Promise<void> {
  const database = options.database ?? options.user ?? 'hearth';
  const parameters = ['--no-owner', '--no-privileges', '--exit-on-error', '--single-transaction'];
  await run('pg_restore', [...parameters, `--dbname=${database}`, file], options);
}

/** Runs a tool of PostgreSQL with the connection settings of the server. */
async function run(tool: string, parameters: readonly string[], options: PostgresOptions): Promise<void> {
  const child = spawn(tool, parameters, {
    env: { ...process.env, ...environmentOf(options) },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        new CommandFailure(
          error.code === 'ENOENT'
            ? `${tool} is not installed: install the client tools of your PostgreSQL (Debian: postgresql-client)`
            : `${tool} cannot be run: ${error.message}`,
        ),
      ),
    );
    child.once('close', resolve);
  });
  if (code !== 0) throw new CommandFailure(`${tool} failed with exit code ${code}: see above`);
}

/** libpq's names of the settings (its manual, "Environment Variables"), which other users of the machine cannot see. */
function environmentOf({
  host,
  port,
  user,
  password,
  database,
  ssl,
}: PostgresOptions): Record<string, string> {
  return {
    ...(host !== undefined && { PGHOST: host }),
    ...(port !== undefined && { PGPORT: String(port) }),
    ...(user !== undefined && { PGUSER: user }),
    ...(password !== undefined && { PGPASSWORD: password }),
    ...(database !== undefined && { PGDATABASE: database }),
    ...(ssl && { PGSSLMODE: 'require' }),
  };
}
