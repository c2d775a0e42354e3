import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { type Migration, migrate, NewerDatabase, type Writer } from './index.ts';

interface Schema {
  things: { room: string; position: number; name: string };
}

const things: Migration = {
  name: 'test/0001-things',
  async up({ db, clustered }) {
    const table = db.schema
      .createTable('things')
      .addColumn('room', 'text', (column) => column.notNull())
      .addColumn('position', 'bigint', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull().defaultTo(''))
      .addPrimaryKeyConstraint('things_key', ['room', 'position']);
    await clustered(table).execute();
  },
};

const index: Migration = {
  name: 'test/0002-index',
  up: ({ run }) => run('create index things_name on things (name)'),
};

forEachDatabase((open) => {
  test('migrate runs each migration once, in order', async () => {
    const ran: string[] = [];
    const recorded = [things, index].map((migration) => ({
      name: migration.name,
      up: async (schema: Parameters<Migration['up']>[0]) => {
        ran.push(migration.name);
        await migration.up(schema);
      },
    }));
    const database = await open(recorded.slice(0, 1));
    await migrate(database, recorded);
    await migrate(database, recorded);
    assert.deepEqual(ran, ['test/0001-things', 'test/0002-index']);
    await database.transaction(async (writer: Writer<Schema>) => {
      await writer.insertInto('things').values({ room: 'a', position: 1, name: 'x' }).execute();
    });
  });

  test('migrate rolls back a failed migration', async () => {
    const database = await open([things]);
    const broken: Migration = {
      name: 'test/0002-broken',
      async up({ run }) {
        await run('create table half (id bigint)');
        throw new Error('half-way');
      },
    };
    await assert.rejects(migrate(database, [things, broken]), /half-way/);
    await migrate(database, [things, { ...broken, up: ({ run }) => run('create table half (id bigint)') }]);
  });

  test('migrate rejects a database of a newer version', async () => {
    const database = await open([things, index]);
    await assert.rejects(migrate(database, [things]), (error: Error) => {
      assert.ok(error instanceof NewerDatabase);
      assert.match(error.message, /test\/0002-index/);
      return true;
    });
  });

  test('migrate rejects two migrations of the same name', async () => {
    const database = await open();
    await assert.rejects(migrate(database, [things, things]), /two migrations have the name/);
  });

  test('migrate applies each migration once when it runs on several connections at the same time', async () => {
    const database = await open();
    const others = [database, await open.openAgain(database), await open.openAgain(database)];
    await Promise.all(others.map((each) => migrate(each, [things, index])));
    const names = await database
      .reader<{ schema_migrations: { name: string } }>()
      .selectFrom('schema_migrations')
      .select('name')
      .orderBy('name')
      .execute();
    assert.deepEqual(names, [{ name: things.name }, { name: index.name }]);
  });

  test('readers see columns that were added after their first read', async () => {
    const database = await open([things]);
    const read = () => database.reader<Schema>().selectFrom('things').selectAll().execute();
    const scan = () => database.scanner<Schema>().selectFrom('things').selectAll().execute();
    assert.deepEqual([await read(), await scan()], [[], []]);
    await migrate(database, [
      things,
      {
        name: 'test/0002-colour',
        up: ({ run }) => run("alter table things add column colour text default 'red'"),
      },
    ]);
    await database.batch([{ sql: "insert into things (room, position) values ('a', ?)", rows: [[1]] }]);
    const row = { room: 'a', position: 1, name: '', colour: 'red' };
    assert.deepEqual([await read(), await scan()], [[row], [row]]);
  });
});
