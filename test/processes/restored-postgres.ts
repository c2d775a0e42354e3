import assert from 'node:assert/strict';
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { connectionTo, type PostgresServer, startPostgres } from '../support/databases/postgres-server.ts';
import { type ServerProcess, startProcess } from './server-process.ts';

const clientApi = '/_matrix/client/v3';

/** The folder with the server and the client tools of an installed PostgreSQL; `undefined` if none is installed. */
export const postgresTools = globSync('/usr/{lib/postgresql,pgsql,local/pgsql}{,-*}{,/*}/bin/pg_dump')
  .map((file) => join(file, '..'))
  .toSorted()
  .findLast((folder) => ['initdb', 'postgres', 'pg_restore'].every((name) => existsSync(join(folder, name))));

/**
 * Starts the installed PostgreSQL, because its tools need a server of their own version. Without an installed PostgreSQL,
 * starts the server of the npm package.
 */
export const startInstalledPostgres = (): Promise<PostgresServer> =>
  startPostgres(
    postgresTools === undefined
      ? undefined
      : { initdb: join(postgresTools, 'initdb'), postgres: join(postgresTools, 'postgres') },
  );

/** Runs a statement. @param database by default the maintenance database `postgres` */
export async function administer(port: number, statement: string, database?: string): Promise<void> {
  const connection = new Client(connectionTo(port, database));
  await connection.connect();
  await connection.query(statement);
  await connection.end();
}

/** Returns the value of the option `database` for a server that uses this database. */
export function postgresOption(port: number, name: string) {
  const { database, ...args } = connectionTo(port, name);
  return { database: { name: 'psycopg2', args: { ...args, dbname: database } } };
}

/** Registers an account. @returns its access token */
export async function register(server: ServerProcess): Promise<string> {
  const body = { username: 'ann', password: 'correct horse', auth: { type: 'm.login.dummy' } };
  const answer = await server.api('POST', `${clientApi}/register`, { body });
  assert.equal(answer.status, 200, answer.raw);
  return String(answer.body['access_token']);
}

export async function createRoom(server: ServerProcess, token: string): Promise<void> {
  const answer = await server.api('POST', `${clientApi}/createRoom`, { token, body: {} });
  assert.equal(answer.status, 200, answer.raw);
}

export async function syncToken(server: ServerProcess, token: string): Promise<string> {
  return String((await server.api('GET', `${clientApi}/sync`, { token })).body['next_batch']);
}

/** Starts a restored server, and checks that a client can continue to sync with a token that it received after the backup. */
export async function startRestored(
  paths: readonly string[],
  token: string,
  since: string,
): Promise<ServerProcess> {
  const server = await startProcess(paths);
  try {
    const quiet = await server.api('GET', `${clientApi}/sync`, { token, query: { since, timeout: 0 } });
    assert.equal(quiet.status, 200, quiet.raw);
    await createRoom(server, token);
    const next = await server.api('GET', `${clientApi}/sync`, { token, query: { since, timeout: 0 } });
    assert.equal(Object.keys((next.body['rooms'] as { join: object }).join).length, 1);
    return server;
  } catch (error) {
    await server.kill();
    throw error;
  }
}
