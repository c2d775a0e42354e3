import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { Client } from 'pg';
import {
  connectionTo,
  type PostgresServer,
  startPostgres,
} from '../../../../test/support/databases/postgres-server.ts';
import { silentLogger } from '../../observability/index.ts';
import { type Database, migrate, openDatabase, type Writer } from '../index.ts';

interface Schema {
  counters: { name: string; value: number };
}

/** A separate server, because a test ends all its connections. */
let server: PostgresServer;
let database: Database;
const value = async () =>
  (
    await database
      .reader<Schema>()
      .selectFrom('counters')
      .select('value')
      .where('name', '=', 'a')
      .executeTakeFirstOrThrow()
  ).value;

before(async () => {
  server = await startPostgres();
  database = await openDatabase({ kind: 'postgres', ...connectionTo(server.port) }, { log: silentLogger });
  await migrate(database, [
    {
      name: 'test/0001-counters',
      up: ({ run }) => run('create table counters (name text primary key, value bigint)'),
    },
  ]);
});

after(async () => {
  await database?.close();
  await server?.stop();
});

const reset = () =>
  database.batch([
    { sql: 'delete from counters', rows: [[]] },
    { sql: 'insert into counters (name, value) values (?, ?)', rows: [['a', 0]] },
  ]);

test('PostgreSQL: conflicting transactions are retried until each has succeeded', async () => {
  await reset();
  const begun = database.statistics.transactions;
  const twoHaveRead = Promise.withResolvers<void>();
  let reads = 0;
  const increment = () =>
    database.transaction(async (writer: Writer<Schema>) => {
      const { value } = await writer.selectFrom('counters').select('value').executeTakeFirstOrThrow();
      reads += 1;
      if (reads === 2) twoHaveRead.resolve();
      await twoHaveRead.promise;
      await writer
        .updateTable('counters')
        .set({ value: value + 1 })
        .execute();
    });
  await Promise.all([increment(), increment(), increment(), increment()]);
  assert.equal(await value(), 4);
  assert.ok(database.statistics.transactions - begun > 4, 'there was no conflict');
});

test('PostgreSQL: connections closed by the server are replaced without errors', async () => {
  await reset();
  await Promise.all([value(), value(), value()]);
  const client = new Client(connectionTo(server.port));
  await client.connect();
  await client.query('select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()');
  await client.end();
  const update = database.transaction(async (writer: Writer<Schema>) => {
    await writer.updateTable('counters').set({ value: 9 }).execute();
  });
  await Promise.all([update, database.batch([{ sql: "insert into counters values ('b', 1)", rows: [[]] }])]);
  assert.equal(await value(), 9);
});

test('PostgreSQL: the scanner cannot write', async () => {
  await assert.rejects(
    sql`insert into counters values ('c', 1)`.execute(database.scanner()),
    /read-only transaction/,
  );
});

test('PostgreSQL: the scanner reads without parallel workers', async () => {
  const { rows } = await sql<{ workers: string }>`
    select current_setting('max_parallel_workers_per_gather') as workers`.execute(database.scanner());
  assert.deepEqual(rows, [{ workers: '0' }]);
});

test('PostgreSQL: opening fails at once when no server listens', async () => {
  const opening = openDatabase({ kind: 'postgres', ...connectionTo(1) }, { log: silentLogger });
  await assert.rejects(opening, /ECONNREFUSED/);
});

test('PostgreSQL: a database whose encoding is not UTF-8 is rejected', async () => {
  const client = new Client(connectionTo(server.port));
  await client.connect();
  await client.query("create database latin encoding 'LATIN1' template template0");
  await client.end();
  const latin = openDatabase(
    { kind: 'postgres', ...connectionTo(server.port, 'latin') },
    { log: silentLogger },
  );
  await assert.rejects(latin, /encoding LATIN1/);
});
