import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { stringify } from 'yaml';
import type { PostgresServer } from '../support/databases/postgres-server.ts';
import {
  administer,
  createRoom,
  postgresOption,
  postgresTools,
  register,
  startInstalledPostgres,
  startRestored,
  syncToken,
} from './restored-postgres.ts';
import { configure, hearth, type ServerProcess, startProcess } from './server-process.ts';

describe('hearth backup and hearth restore on PostgreSQL', () => {
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

  const databaseOption = (name: string) => postgresOption(postgres.port, name);
  const configured = (directory: string, database: string) =>
    configure(join(folder, directory), databaseOption(database));
  const create = (name: string, template = 'template0') =>
    administer(postgres.port, `create database ${name} template ${template}`);

  it('hearth restore --database-only prepares a database that other tools have restored, so that clients with sync tokens from after the backup can sync', {
    timeout: 600_000,
  }, async () => {
    await create('first');
    const paths = configured('first', 'first');
    let server = await startProcess(paths);
    running = server;
    const token = await register(server);
    await server.stop();
    await create('copied', 'first');
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
    running = await startRestored(restored, token, since);
    await running.stop();
  });

  it('runs pg_dump and pg_restore, names a missing tool, and refuses to start the server after a killed restore until the same command completes it', {
    timeout: 600_000,
  }, async () => {
    await create('second');
    const paths = configured('second', 'second');
    const flags = paths.flatMap((path) => ['-c', path]);
    const missing = await hearth(['backup', join(folder, 'none'), ...flags], { PATH: folder });
    assert.equal(missing.code, 1);
    assert.match(
      missing.err,
      /^hearth: pg_dump is not installed: install the client tools of your PostgreSQL/,
    );
    assert.deepEqual(readdirSync(join(folder, 'none')), []);
    if (!postgresTools) return;

    const env = { PATH: `${postgresTools}:${process.env['PATH']}` };
    const server = await startProcess(paths);
    running = server;
    const token = await register(server);
    const backup = join(folder, 'backup');
    const backedUp = await hearth(['backup', backup, ...flags], env);
    assert.deepEqual([backedUp.code, backedUp.err], [0, '']);
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
    const restoredOverData = await hearth(['restore', backup, ...flags], env);
    assert.equal(restoredOverData.code, 1);
    assert.match(
      restoredOverData.err,
      /^hearth: the PostgreSQL database second on \S+ port \d+ is not empty\. .*createdb/,
    );
    await administer(postgres.port, 'drop database second with (force)');
    await create('second');
    const killed = await hearth(['restore', backup, ...flags], {
      PATH: `${killingTools(postgresTools)}:${env.PATH}`,
    });
    assert.equal(killed.code, null, 'the command is killed after the transaction of pg_restore');
    const refused = await hearth(['serve', ...flags]);
    assert.match(
      refused.err,
      /this database is incomplete: its restore from \S+ was interrupted; call the same "hearth restore" again/,
    );
    const restored = await hearth(['restore', backup, ...flags], env);
    assert.deepEqual([restored.code, restored.err], [0, '']);
    running = await startRestored(paths, token, since);
    await running.stop();
  });

  /** Returns a folder with a pg_restore that restores the contents and then kills the process that has called it. */
  function killingTools(tools: string): string {
    const directory = join(folder, 'killing');
    mkdirSync(directory);
    const script = `#!/bin/sh\n${join(tools, 'pg_restore')} "$@"\ncase "$*" in *--list*) ;; *) kill -9 $PPID ;; esac\n`;
    writeFileSync(join(directory, 'pg_restore'), script, { mode: 0o755 });
    return directory;
  }
});
