import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Client } from 'pg';
import { createHomeserver } from '../../src/homeserver.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import { HearthProcess } from '../clients/hearth-process.ts';
import { databaseOption } from '../support/databases/database-option.ts';
import { forPostgres, makeTestDatabase, type TestDatabase } from '../support/databases/databases.ts';
import { connectionTo } from '../support/databases/postgres-server.ts';
import { startTestServer, testConfiguration } from '../support/servers/server.ts';

forPostgres(() => {
  describe('two servers on one PostgreSQL database', () => {
    it('refuses to start a second server on a PostgreSQL database, and names the process of the first', async () => {
      const server = await startTestServer({ database: 'postgres' });
      try {
        const second = createHomeserver({
          configuration: testConfiguration(),
          clock: systemClock,
          randomness: systemRandomness,
          log: silentLogger,
          databaseOptions: { ...server.databaseOptions, claimTimeout: 100 } as typeof server.databaseOptions,
        });
        const inUse = new RegExp(`is in use by another server: process ${process.pid} on `);
        await assert.rejects(second.start(), { name: 'StartFailure', message: inUse });
        await server.register('alice');
        await server.restart();
        await server.register('bob');
      } finally {
        await server.stop();
      }
    });
  });

  describe('a server that has lost its lease on PostgreSQL to another server', () => {
    let database: TestDatabase;
    let server: HearthProcess;
    before(async () => {
      database = await makeTestDatabase('postgres');
      server = await HearthProcess.create({ database: databaseOption(database.options) });
      await server.start();
    });
    after(async () => {
      await server?.remove();
      await database?.remove();
    });

    it('rejects writes once another server has taken over the database, logs the loss of the lease, and exits with code 1', async () => {
      const { options } = database;
      assert.ok(options.kind === 'postgres');
      const client = new Client(connectionTo(Number(options.port), options.database));
      await client.connect();
      await client.query('update writer_lease set epoch = epoch + 1');
      const register = fetch(`${server.url}/_matrix/client/v3/register`, {
        method: 'POST',
        body: JSON.stringify({
          username: 'late',
          password: 'correct horse',
          auth: { type: 'm.login.dummy' },
        }),
      });
      // The server may have noticed the loss of the lease, and stopped listening, before the request.
      const status = await register.then((response) => response.status).catch(() => 503);
      assert.equal(status, 503);
      assert.equal(await server.ended(), 1);
      assert.match(
        await readFile(join(server.directory, 'hearth.log'), 'utf8'),
        /"level":"fatal".*Another server has taken over the database/,
      );
      const { rows } = await client.query('select count(*)::int as count from users');
      await client.end();
      assert.deepEqual(rows, [{ count: 0 }]);
    });
  });
});
