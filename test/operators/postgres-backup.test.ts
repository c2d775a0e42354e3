import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Client } from 'pg';
import { stringify } from 'yaml';
import { connectionTo, type PostgresServer, startPostgres } from '../support/databases/postgres-server.ts';
import { configure, hearth, type ServerProcess, startProcess } from './server-process.ts';

const client = '/_matrix/client/v3';

/** The folder of an installed PostgreSQL with its client tools; `undefined` if none is installed. */
const installed = globSync('/usr/{lib/postgresql,pgsql,local/pgsql}{,-*}{,/*}/bin/pg_dump')
  .map((file) => join(file, '..'))
  .toSorted()
  .findLast((folder) => ['initdb', 'postgres', 'pg_restore'].every((name) => existsSync(join(folder, name))));

describe('hearth backup and hearth restore on PostgreSQL', () => {
  let folder = '';
  let postgres: PostgresServer;
  let running: ServerProcess | undefined;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-backup-'));
    postgres = await startPostgres(
      installed === undefined
        ? undefined
        : { initdb: join(installed, 'initdb'), postgres: join(installed, 'postgres') },
    );
  });
  after(async () => {
    await running?.kill();
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const administer = async (statement: string) => {
    const connection = new Client(connectionTo(postgres.port));
    await connection.connect();
    await connection.query(statement);
    await connection.end();
  };
  const databaseOption = (name: string) => {
    const { database, ...args } = connectionTo(postgres.port, name);
    return { database: { name: 'psycopg2', args: { ...args, dbname: database } } };
  };
  const configured = (directory: string, database: string) =>
    configure(join(folder, directory), databaseOption(database));
  const register = async (server: ServerProcess) => {
    const body = { username: 'ann', password: 'correct horse', auth: { type: 'm.login.dummy' } };
    const answer = await server.api('POST', `${client}/register`, { body });
    assert.equal(answer.status, 200, answer.raw);
    return String(answer.body['access_token']);
  };
  const createRoom = async (server: ServerProcess, token: string) => {
    const answer = await server.api('POST', `${client}/createRoom`, { token, body: {} });
    assert.equal(answer.status, 200, answer.raw);
  };
  const syncToken = async (server: ServerProcess, token: string) =>
    String((await server.api('GET', `${client}/sync`, { token })).body['next_batch']);

  /** Checks that a client with a sync token from after the backup can continue at the restored server. */
  async function goesOn(paths: readonly string[], token: string, since: string): Promise<void> {
    const server = await startProcess(paths);
    running = server;
    const quiet = await server.api('GET', `${client}/sync`, { token, query: { since, timeout: 0 } });
    assert.equal(quiet.status, 200, quiet.raw);
    await createRoom(server, token);
    const next = await server.api('GET', `${client}/sync`, { token, query: { since, timeout: 0 } });
    assert.equal(Object.keys((next.body['rooms'] as { join: object }).join).length, 1);
    await server.stop();
  }

  it('prepares a database that other tools have restored for clients with sync tokens from after the backup', {
    timeout: 120_000,
  }, async () => {
    await administer('create database first template template0');
    const paths = configured('first', 'first');
    let server = await startProcess(paths);
    running = server;
    const token = await register(server);
    await server.stop();
    await administer('create database copied template first');
    server = await startProcess(paths);
    running = server;
    for (let count = 0; count < 3; count += 1) await createRoom(server, token);
    const since = await syncToken(server, token);
    await server.kill();
    writeFileSync(join(folder, 'first', 'copied.yaml'), stringify(databaseOption('copied')));
    const restored = [...paths, join(folder, 'first', 'copied.yaml')];
    const prepared = await hearth([
      'restore',
      '--database-only',
      ...restored.flatMap((path) => ['-c', path]),
    ]);
    assert.deepEqual([prepared.code, prepared.err], [0, '']);
    assert.match(prepared.out, /^The restored database is ready/);
    await goesOn(restored, token, since);
  });

  it('runs pg_dump and pg_restore, or names the tool that is missing', { timeout: 120_000 }, async () => {
    await administer('create database second template template0');
    const paths = configured('second', 'second');
    const flags = paths.flatMap((path) => ['-c', path]);
    const missing = await hearth(['backup', join(folder, 'none'), ...flags], { PATH: folder });
    assert.equal(missing.code, 1);
    assert.match(
      missing.err,
      /^hearth: pg_dump is not installed: install the client tools of your PostgreSQL/,
    );
    assert.deepEqual(readdirSync(join(folder, 'none')), []);
    if (!installed) return;

    const env = { PATH: `${installed}:${process.env['PATH']}` };
    const server = await startProcess(paths);
    running = server;
    const token = await register(server);
    const backup = join(folder, 'backup');
    const made = await hearth(['backup', backup, ...flags], env);
    assert.deepEqual([made.code, made.err], [0, '']);
    assert.match(
      execFileSync('pg_restore', ['-l', join(backup, 'database', 'postgresql.dump')], {
        encoding: 'utf8',
        env,
      }),
      /TABLE DATA public events/,
    );
    for (let count = 0; count < 3; count += 1) await createRoom(server, token);
    const since = await syncToken(server, token);
    await server.kill();
    const full = await hearth(['restore', backup, ...flags], env);
    assert.equal(full.code, 1);
    assert.match(full.err, /already exists[\s\S]*hearth: pg_restore failed with exit code 1/);
    await administer('drop database second with (force)');
    await administer('create database second template template0');
    const restored = await hearth(['restore', backup, ...flags], env);
    assert.deepEqual([restored.code, restored.err], [0, '']);
    await goesOn(paths, token, since);
  });
});
