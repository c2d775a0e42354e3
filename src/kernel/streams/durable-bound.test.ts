import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { eventually } from '../../../test/clients/eventually.ts';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { systemClock } from '../clock.ts';
import type { Database, Migration } from '../database/index.ts';
import { jsonFacts, LocalStreams, Sequence, Stream, streamMigrations } from './index.ts';
import type { PositionTables } from './store.ts';

interface ThingTables {
  things: { id: number };
}

const things: Migration = {
  name: 'test/things',
  async up({ db }) {
    await db.schema
      .createTable('things')
      .addColumn('id', 'bigint', (column) => column.primaryKey())
      .execute();
  },
};

const log = pino({ level: 'silent' });
const step = 10;

/**
 * Calls `before` before each write in the background that only raises bounds. Such a write is a batch without
 * statements. `before` may delay the write or make it fail.
 */
function beforeBackgroundRaises(database: Database, before: () => Promise<void>): void {
  const batch = database.batch.bind(database);
  database.batch = async (statements) => {
    if (statements.length === 0) await before();
    await batch(statements);
  };
}

const fail = () => Promise.reject(new Error('the disk is full'));

async function boundOf(database: Database, name: string): Promise<number> {
  const { bound } = await database
    .reader<PositionTables>()
    .selectFrom('number_bounds')
    .select('bound')
    .where('name', '=', name)
    .executeTakeFirstOrThrow();
  return bound;
}

const insertThings = (database: Database, takeIds: () => readonly number[]) =>
  database.transaction<ThingTables, readonly number[]>(async (writer) => {
    const ids = takeIds();
    await writer
      .insertInto('things')
      .values(ids.map((id) => ({ id })))
      .execute();
    return ids;
  });

const many = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

forEachDatabase((open) => {
  const openEmpty = () => open([...streamMigrations, things]);

  test('A transaction that takes 500 ids of a Sequence with a first step of 10 raises its bound on disk to the last id or above', async () => {
    const database = await openEmpty();
    const sequence = await Sequence.open(database, 'things', step);
    beforeBackgroundRaises(database, fail);
    const ids = await insertThings(database, () => many(500, () => sequence.next()));
    assert.equal(new Set(ids).size, 500);
    assert.ok((await boundOf(database, 'things')) >= Math.max(...ids));
    const reopened = await open.restart(database);
    assert.ok((await Sequence.open(reopened, 'things', step)).next() > Math.max(...ids));
  });

  test('A batch with 500 ids of a Sequence with a first step of 10 raises its bound on disk to the last id or above; of two later batches with one id each, the second raises no bound', async () => {
    const database = await openEmpty();
    const sequence = await Sequence.open(database, 'things', step);
    beforeBackgroundRaises(database, fail);
    const rows = many(500, () => [sequence.next()]);
    await database.batch([{ sql: 'insert into things (id) values (?)', rows }]);
    assert.ok((await boundOf(database, 'things')) >= Math.max(...rows.flat()));
    const insertOne = () =>
      database.batch([{ sql: 'insert into things (id) values (?)', rows: [[sequence.next()]] }]);
    await insertOne(); // Raises the bound once more, by a step of 20.
    const writesBefore = database.statistics.writes;
    await insertOne();
    assert.equal(database.statistics.writes, writesBefore + 1);
  });

  test('The write after a transaction that was rolled back raises the bound of a Sequence above the ids that both have taken', async () => {
    const database = await openEmpty();
    const sequence = await Sequence.open(database, 'things', step);
    beforeBackgroundRaises(database, fail);
    const boundBefore = await boundOf(database, 'things');
    const failing = database.transaction<ThingTables, void>(async (writer) => {
      const id = many(50, () => sequence.next()).at(-1)!;
      await writer.insertInto('things').values({ id }).execute();
      throw new Error('no');
    });
    await assert.rejects(failing, /no/);
    assert.equal(await boundOf(database, 'things'), boundBefore);
    const [id] = await insertThings(database, () => [sequence.next()]);
    assert.ok((await boundOf(database, 'things')) >= id!);
  });

  test('60 transactions and 60 batches at once take 100 ids each from Sequences with a first step of 10, and no id twice', async () => {
    const database = await openEmpty();
    const [inTransactions, inBatches] = await Promise.all([
      Sequence.open(database, 'transactions', step),
      Sequence.open(database, 'batches', step),
    ]);
    const ids = await Promise.all([
      ...many(60, () => insertThings(database, () => many(100, () => 2 * inTransactions.next()))),
      ...many(60, async () => {
        const odd = many(100, () => 2 * inBatches.next() + 1);
        await database.batch([{ sql: 'insert into things (id) values (?)', rows: odd.map((id) => [id]) }]);
        return odd;
      }),
    ]);
    assert.equal(new Set(ids.flat()).size, 12_000);
    assert.ok(2 * (await boundOf(database, 'transactions')) >= Math.max(...ids.slice(0, 60).flat()));
    assert.ok(2 * (await boundOf(database, 'batches')) + 1 >= Math.max(...ids.slice(60).flat()));
  });

  test('LocalStreams with a first step of 10 assigns 500 positions in one turn of the event loop, and delivers no fact above the bound on disk before the bound is raised', async () => {
    const database = await openEmpty();
    const streams = await LocalStreams.open({ database, clock: systemClock, log, boundStep: step });
    const delivered: number[] = [];
    const stream = new Stream<string>('numbers', jsonFacts());
    stream.subscribe((_fact, position) => delivered.push(position));
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    beforeBackgroundRaises(database, () => released);
    const bound = await boundOf(database, 'positions');
    const announced = many(250, () => streams.announce(stream, 'in memory'));
    const reserved = streams.reserving((reserve) => many(250, () => reserve(stream)));
    for (const reservation of reserved) reservation.complete('reserved');
    const positions = [...announced, ...reserved.map(({ position }) => position)];
    assert.equal(new Set(positions).size, 500);
    assert.equal(streams.current, bound);
    assert.deepEqual(
      delivered,
      positions.filter((position) => position <= bound),
    );
    release();
    await eventually('the delivery', () => streams.current === positions.at(-1));
    assert.deepEqual(delivered, positions);
    assert.ok((await boundOf(database, 'positions')) >= streams.current);
  });

  test('LocalStreams delivers facts that are not stored, although the first raise of the bound on disk fails', async () => {
    const database = await openEmpty();
    const streams = await LocalStreams.open({ database, clock: systemClock, log, boundStep: step });
    const stream = new Stream<string>('numbers', jsonFacts());
    let raises = 0;
    let delivered = 0;
    let deliveredAfterFailure: number | undefined;
    stream.subscribe(() => delivered++);
    beforeBackgroundRaises(database, async () => {
      raises++;
      if (raises === 1) await fail();
      deliveredAfterFailure ??= delivered;
    });
    const last = many(50, () => streams.announce(stream, 'in memory')).at(-1)!;
    await eventually('the delivery', () => streams.current === last);
    assert.ok(deliveredAfterFailure! <= step, `${deliveredAfterFailure} facts`);
    assert.equal(delivered, 50);
  });

  test('LocalStreams with a first step of 10 completes 200 writes at once with 20 facts each', async () => {
    const database = await openEmpty();
    const streams = await LocalStreams.open({ database, clock: systemClock, log, boundStep: step });
    const stream = new Stream<string>('numbers', jsonFacts());
    const delivered: number[] = [];
    stream.subscribe((_fact, position) => delivered.push(position));
    const written = await Promise.all(
      many(200, () =>
        streams.write<ThingTables, number[]>(async (writer, publish) => {
          const positions = many(20, () => publish(stream, 'on disk'));
          await writer
            .insertInto('things')
            .values(positions.map((id) => ({ id })))
            .execute();
          return positions;
        }),
      ),
    );
    assert.deepEqual(
      delivered,
      written.flat().sort((a, b) => a - b),
    );
    assert.ok((await boundOf(database, 'positions')) >= Math.max(...delivered));
  });
});
