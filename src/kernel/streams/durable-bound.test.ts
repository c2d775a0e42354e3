import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { eventually } from '../../../test/clients/eventually.ts';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
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

/** The same database, whose transactions a test can hold back or fail: the transactions that raise bounds ahead. */
class SlowBounds {
  /** Called before each transaction. */
  before: () => Promise<void> = async () => undefined;
  readonly database: Database;

  constructor(database: Database) {
    const transaction: Database['transaction'] = async (work) => {
      await this.before();
      return database.transaction(work);
    };
    this.database = new Proxy(database, {
      get: (target, name) => {
        if (name === 'transaction') return transaction;
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }
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
  const openSlowly = async () => {
    const database = await open([...streamMigrations, things]);
    return { database, bounds: new SlowBounds(database) };
  };

  test('Sequence assigns 500 ids inside a transaction at a step of 10, which raises the bound on disk itself', async () => {
    const { database, bounds } = await openSlowly();
    const sequence = await Sequence.open(bounds.database, 'things', step);
    bounds.before = fail;
    const ids = await insertThings(database, () => many(500, () => sequence.next()));
    assert.equal(new Set(ids).size, 500);
    assert.ok((await boundOf(database, 'things')) >= Math.max(...ids));
    const reopened = await open.restart(database);
    assert.ok((await Sequence.open(reopened, 'things', step)).next() > Math.max(...ids));
  });

  test('Sequence assigns 500 ids for a batch at a step of 10, which raises the bound on disk itself', async () => {
    const { database, bounds } = await openSlowly();
    const sequence = await Sequence.open(bounds.database, 'things', step);
    bounds.before = fail;
    const rows = many(500, () => [sequence.next()]);
    await database.batch([{ sql: 'insert into things (id) values (?)', rows }]);
    assert.ok((await boundOf(database, 'things')) >= Math.max(...rows.flat()));
    const writesBefore = database.statistics.writes;
    await database.batch([{ sql: 'insert into things (id) values (?)', rows: [[sequence.next()]] }]);
    assert.equal(database.statistics.writes, writesBefore + 1);
  });

  test('Sequence raises the bound with the next write after a transaction with ids above it was rolled back', async () => {
    const { database, bounds } = await openSlowly();
    const sequence = await Sequence.open(bounds.database, 'things', step);
    bounds.before = fail;
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

  test('Sequence assigns ids to 60 transactions and 60 batches at once, 100 ids each at a step of 10', async () => {
    const { database } = await openSlowly();
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

  test('LocalStreams assigns 500 positions in one turn at a step of 10, and delivers facts in memory up to the bound on disk', async () => {
    const { database, bounds } = await openSlowly();
    const streams = await LocalStreams.open({
      database: bounds.database,
      clock: systemClock,
      log,
      boundStep: step,
    });
    const delivered: number[] = [];
    const stream = new Stream<string>('numbers', jsonFacts());
    stream.subscribe((_fact, position) => delivered.push(position));
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    bounds.before = () => released;
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

  test('LocalStreams raises the bound again after a failure, so that facts in memory are delivered', async () => {
    const { bounds } = await openSlowly();
    const clock = manualClock();
    const streams = await LocalStreams.open({ database: bounds.database, clock, log, boundStep: step });
    const stream = new Stream<string>('numbers', jsonFacts());
    let failures = 0;
    bounds.before = () => {
      failures++;
      return fail();
    };
    const last = many(50, () => streams.announce(stream, 'in memory')).at(-1)!;
    await eventually('the failure', () => failures === 1);
    bounds.before = async () => undefined;
    assert.ok(streams.current < last);
    await eventually('the delivery', () => {
      clock.advance(1_000);
      return streams.current === last;
    });
  });

  test('LocalStreams completes 200 writes at once with 20 facts each at a step of 10', async () => {
    const { database } = await openSlowly();
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
