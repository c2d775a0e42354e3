import assert from 'node:assert/strict';
import { it } from 'node:test';
import { sql } from 'kysely';
import { forEachDatabase, makeTestDatabase } from '../../../../test/support/databases/databases.ts';
import { silentLogger } from '../../observability/index.ts';
import { systemRandomness } from '../../randomness.ts';
import type { Database, Migration } from '../database.ts';
import { TextQuery } from '../full-text/grams.ts';
import { migrate } from '../migrate.ts';
import { databaseMigrations } from '../migrations/index.ts';
import { type DatabaseOptions, openDatabase, openDatabaseExclusively } from '../open.ts';
import { type MoveDeps, moveDatabase } from './move-database.ts';
import { readMark, writeMark } from './move-marks.ts';
import { splitDatabase } from './split-database.ts';
import { writeStoreMark } from './store-marks.ts';
import type { TextIndex } from './text-index.ts';

type Tables = {
  notes: { room: string; number: number; body: string | null; sealed: Uint8Array | null };
  numbered: { id: number; name: string };
};

const testMigration: Migration = {
  name: 'test/0001',
  async up({ db, clustered, fullText }) {
    await clustered(
      db.schema
        .createTable('notes')
        .addColumn('room', 'text', (column) => column.notNull())
        .addColumn('number', 'bigint', (column) => column.notNull())
        .addColumn('body', 'text')
        .addColumn('sealed', 'bytea')
        .addPrimaryKeyConstraint('notes_key', ['room', 'number']),
    ).execute();
    await db.schema
      .createTable('numbered')
      .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
      .addColumn('name', 'text', (column) => column.notNull().unique())
      .execute();
    await fullText('note_texts');
  },
};

const migrations = [...databaseMigrations, testMigration];

const noteTexts: TextIndex = {
  name: 'note_texts',
  changes: true,
  async documents(database, ids) {
    const rows = await database
      .scanner<Tables>()
      .selectFrom('numbered')
      .selectAll()
      .where('id', 'in', ids)
      .execute();
    return rows.map(({ id, name }) => ({ id, scope: 0, text: name }));
  },
};

/** Room names that locales order differently than code points do. */
const rooms = ['!b', '!B', '!ä', '!a:b', '!\u{1F600}'];

async function fill(database: Database): Promise<void> {
  const notes = rooms.flatMap((room) =>
    Array.from({ length: 60 }, (_, number) => [
      room,
      number,
      number % 3 === 0 ? null : `~${number}:'"\\\n\u{1F600}${'x'.repeat(number)}`,
      number % 2 === 0 ? null : Uint8Array.of(0, number, 255),
    ]),
  );
  const names = Array.from({ length: 50 }, (_, index) => [index * 2 + 1, `name ${index}`]);
  const texts = names.map(([id, name]) => ({ id: Number(id), scope: 0, text: String(name) }));
  await database.batch([
    { sql: 'insert into notes (room, number, body, sealed) values (?, ?, ?, ?)', rows: notes },
    { sql: 'insert into numbered (id, name) values (?, ?)', rows: names },
    ...database.fullText('note_texts').statements(texts, []),
  ]);
}

async function contentsOf(database: Database) {
  const reader = database.scanner<Tables>();
  return {
    notes: await reader.selectFrom('notes').selectAll().orderBy('room').orderBy('number').execute(),
    numbered: await reader.selectFrom('numbered').selectAll().orderBy('id').execute(),
    found: await database.fullText('note_texts').candidates({ query: new TextQuery('name 7'), limit: 100 }),
  };
}

const environment = { log: silentLogger };

forEachDatabase((open) => {
  const otherKind = open.kind === 'sqlite' ? 'postgres' : 'sqlite';

  /** Opens a source with rows, and creates an empty target of the other kind. */
  async function sourceAndTarget() {
    const database = await open([...migrations]);
    await fill(database);
    const { options: to, remove } = await makeTestDatabase(otherKind);
    const from = open.optionsOf(database);
    const move = (more: Partial<MoveDeps> = {}) =>
      moveDatabase({
        source: from,
        target: to,
        migrations,
        textIndexes: [noteTexts],
        randomness: systemRandomness,
        overwrites: false,
        onProgress: () => {},
        ...environment,
        ...more,
      });
    return { database, from, to, remove, move };
  }
  const withDatabase = async <T>(
    options: DatabaseOptions,
    read: (database: Database) => Promise<T>,
  ): Promise<T> => {
    const database = await openDatabase(options, environment);
    try {
      return await read(database);
    } finally {
      await database.close();
    }
  };
  /** Opens a database as a server does when it starts, and closes it. */
  const openAndClose = async (options: DatabaseOptions) => {
    const database = await openDatabaseExclusively(options, environment, () => {});
    await database.close();
  };

  it('moveDatabase moves all rows, bytes and full-text documents to the other kind of database, where identity columns continue after the highest number, and moves them back only when it may overwrite the outdated contents', async () => {
    const { database, from, to, remove, move } = await sourceAndTarget();
    const before = await contentsOf(database);
    await database.close();
    const { isComplete, tables } = await move();
    assert.equal(isComplete, true);
    assert.deepEqual(
      tables.map(({ name, rows }) => [name, rows]),
      [
        ['notes', 300],
        ['numbered', 50],
        ['note_texts', 50],
      ],
    );
    assert.deepEqual(await withDatabase(to, contentsOf), before);
    assert.ok(before.found.length > 0);
    await withDatabase(to, (target) =>
      target.transaction<Tables, unknown>((writer) =>
        writer
          .insertInto('numbered')
          .values({ name: 'next' } as Tables['numbered'])
          .execute(),
      ),
    );
    const last = (await withDatabase(to, contentsOf)).numbered.at(-1);
    assert.deepEqual(last, { id: 100, name: 'next' });
    await assert.rejects(
      openAndClose(from),
      /this database was moved to the .* database .*, which the server uses now/,
    );
    await openAndClose(to);
    await assert.rejects(move(), /the source was already moved to/);
    const back = { source: to, target: from };
    await assert.rejects(move(back), /outdated contents .* give --overwrite/);
    const returned = await move({ ...back, overwrites: true });
    assert.deepEqual(
      returned.tables.map(({ rows }) => rows),
      [300, 51, 50],
    );
    assert.equal(returned.tables[0]?.hash, tables[0]?.hash, 'the hash is the same on both kinds of database');
    await openAndClose(from);
    await assert.rejects(openAndClose(to), /was moved/);
    await remove();
  });

  it('moveDatabase continues after it was killed at any point, and at no point can servers start on both databases', async () => {
    const { database, from, to, remove, move } = await sourceAndTarget();
    const before = await contentsOf(database);
    await database.close();
    const state = async () => {
      const sourceMark = await withDatabase(from, (side) => readMark(side, from.kind));
      const targetMark = await withDatabase(to, (side) => readMark(side, to.kind));
      return [sourceMark?.state, targetMark?.state];
    };
    for (let calls = 1; calls <= 5; calls += 2) {
      let count = 0;
      const failing = move({
        onProgress: () => {
          count += 1;
          if (count === calls) throw new Error('killed');
        },
      });
      await assert.rejects(failing, /killed/);
      assert.deepEqual(await state(), [undefined, 'incomplete']);
      await assert.rejects(openAndClose(to), /this database is incomplete: finish "hearth database move"/);
      await openAndClose(from);
    }
    // A kill between the last two steps: the source is marked as moved, and the target is still marked as incomplete.
    const mark = await withDatabase(to, (side) => readMark(side, to.kind));
    await withDatabase(from, (side) => writeMark(side, { ...mark!, state: 'moved', other: 'the target' }, 0));
    await assert.rejects(openAndClose(from), /was moved to the target/);
    await assert.rejects(openAndClose(to), /incomplete/);
    assert.equal((await move()).isComplete, true);
    assert.deepEqual(await state(), ['moved', undefined]);
    assert.deepEqual(await withDatabase(to, contentsOf), before);
    await remove();
  });

  it('moveDatabase copies while a server uses the source, and afterwards copies only the changes, including unique values that have moved to other rows', async () => {
    const { database, from, to, remove, move } = await sourceAndTarget();
    await database.close();
    const server = await openDatabaseExclusively(from, environment, () => {});
    const first = await move();
    assert.equal(first.isComplete, false);
    await server.transaction<Tables, void>(async (writer) => {
      await writer.deleteFrom('numbered').where('id', '=', 41).execute();
      await writer.updateTable('numbered').set({ name: 'name 20' }).where('id', '=', 1).execute();
      await writer.updateTable('notes').set({ body: 'changed' }).where('number', '=', 7).execute();
      await writer.deleteFrom('notes').where('room', '=', '!B').execute();
    });
    await server.transaction(async (writer) => {
      await server.fullText('note_texts').remove(writer, [41]);
      await server.fullText('note_texts').put(writer, [{ id: 1, scope: 0, text: 'name 20' }]);
    });
    const before = await contentsOf(server);
    await server.close();
    assert.equal((await move()).isComplete, true);
    assert.deepEqual(await withDatabase(to, contentsOf), before);
    await remove();
  });

  it('moveDatabase refuses a target with data, and a source that is missing, not migrated, or the same as the target', async () => {
    const { database, from, to, remove, move } = await sourceAndTarget();
    await database.close();
    await assert.rejects(move({ target: from }), /both configurations name the same database/);
    await assert.rejects(move({ source: { kind: 'sqlite', path: '/nowhere/x.db' } }), /there is no database/);
    await assert.rejects(
      move({ migrations: [...migrations, { ...testMigration, name: 'test/0002' }] }),
      /schema of an older release: start the server/,
    );
    await assert.rejects(move({ migrations: migrations.slice(0, -1) }), /schema of a newer release/);
    await withDatabase(to, (side) => migrate(side, databaseMigrations));
    await assert.rejects(move(), /the target is in use as a database of Hearth/);
    await assert.rejects(move({ overwrites: true }), /the target is in use as a database of Hearth/);
    await openAndClose(from);
    await openAndClose(to);
    await remove();
  });

  it('moveDatabase refuses a source or a target that is one of the two databases of a split server', async () => {
    const { database, from, to, remove, move } = await sourceAndTarget();
    await writeStoreMark(database, { store: 'main', setId: 'set' });
    await database.close();
    await assert.rejects(move(), /the source has only the data store main/);
    await openAndClose(to);
    const split = await sourceAndTarget();
    await split.database.close();
    await withDatabase(split.to, (target) => writeStoreMark(target, { store: 'state', setId: 'set' }));
    await assert.rejects(split.move({ overwrites: true }), /the target has only the data store state/);
    await openAndClose(split.from);
    for (const removeTarget of [remove, split.remove]) await removeTarget();
    assert.equal((await withDatabase(from, (source) => readMark(source, open.kind)))?.state, undefined);
  });

  it('splitDatabase refuses a source that was moved, or is the incomplete target of a move', async () => {
    const { database, from, to, remove } = await sourceAndTarget();
    const splitting = () =>
      splitDatabase({
        source: from,
        target: to,
        migrations,
        stateMigrations: databaseMigrations,
        stateTables: [],
        bound: 'groups',
        randomness: systemRandomness,
        onProgress: () => {},
        ...environment,
      });
    await writeMark(database, { state: 'incomplete', moveId: 'move', other: 'the other one' }, 1);
    await assert.rejects(splitting(), /the source is incomplete: finish its move from the other one first/);
    await writeMark(database, { state: 'moved', moveId: 'move', other: 'the other one' }, 1);
    await assert.rejects(splitting(), /the source was moved to the other one/);
    await database.close();
    await openAndClose(to);
    await remove();
  });

  it('moveDatabase fails when rows of the target differ right after they were written, and leaves the target marked as incomplete', async () => {
    const { database, from, to, remove, move } = await sourceAndTarget();
    await database.close();
    await assert.rejects(
      move({
        onProgress: () => {
          throw new Error('killed');
        },
      }),
      /killed/,
    );
    // Simulates a broken disk: the rows that are read differ from the rows that were written.
    await withDatabase(to, (side) =>
      side.changeSchema(async ({ db }) => {
        const text =
          open.kind === 'postgres'
            ? `create trigger broken after insert on notes begin update notes set body = 'other' where number = 5; end`
            : `create rule broken as on insert to notes where new.number = 5 do instead nothing`;
        await sql.raw(text).execute(db);
      }),
    );
    await assert.rejects(move(), /the table notes differs after it was copied/);
    await assert.rejects(openAndClose(to), /incomplete/);
    await openAndClose(from);
    await remove();
  });
});
