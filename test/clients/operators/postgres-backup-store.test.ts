import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'node:test';
import {
  administer as administerAt,
  createRoom,
  postgresOption,
  postgresTools,
  register,
  startInstalledPostgres,
  startRestored,
  syncToken,
} from '../../processes/restored-postgres.ts';
import { configure, hearth, type ServerProcess, startProcess } from '../../processes/server-process.ts';
import type { PostgresServer } from '../../support/databases/postgres-server.ts';
import { after, before, test } from '../bounded-test.ts';

describe('hearth backup --store and hearth restore --store on PostgreSQL', () => {
  let folder = '';
  let postgres: PostgresServer;
  let running: ServerProcess | undefined;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-backup-'));
    postgres = await startInstalledPostgres();
  });
  after(async () => {
    await running?.kill();
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const administer = (statement: string, database?: string) =>
    administerAt(postgres.port, statement, database);

  test('stores both databases of a server, equal pieces only once, and restores them', async () => {
    assert.ok(postgresTools, 'this test needs the client tools of PostgreSQL: install postgresql');
    const env = { PATH: `${postgresTools}:${process.env['PATH']}` };
    const names = ['two_main', 'two_state'];
    const create = async () => {
      for (const name of names) await administer(`create database ${name} template template0`);
    };
    await create();
    const entry = (name: string, store: string) => ({
      ...postgresOption(postgres.port, name).database,
      data_stores: [store],
    });
    const paths = configure(join(folder, 'two'), {
      database: null,
      databases: { first: entry('two_main', 'main'), second: entry('two_state', 'state') },
    });
    const server = await startProcess(paths);
    running = server;
    const token = await register(server);
    await createRoom(server, token);
    await administer(
      `insert into received_transactions select 'far.example', n, 1, repeat(md5(n::text), 30) from generate_series(1, 2000) n`,
      'two_main',
    );
    const store = join(folder, 'store');
    const backup = ['backup', '--store', store, ...paths.flatMap((path) => ['-c', path])];
    const sent: number[] = [];
    for (let count = 0; count < 2; count += 1) {
      const result = await hearth(backup, env);
      assert.deepEqual([result.code, result.err], [0, '']);
      sent.push(Number(/of which (\d+) were sent/.exec(result.out)?.[1]));
    }
    assert.ok(sent[1]! < sent[0]! / 4, `equal tables are not sent again: ${sent}`);
    const since = await syncToken(server, token);
    await server.kill();
    for (const name of names) await administer(`drop database ${name} with (force)`);
    await create();
    const restored = await hearth(['restore', join(folder, 'two-fetched'), '--store', store], env);
    assert.deepEqual([restored.code, restored.err], [0, '']);
    running = await startRestored(paths, token, since);
    await running.stop();
  });
});
