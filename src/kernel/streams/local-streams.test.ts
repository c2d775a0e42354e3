import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { sql } from 'kysely';
import { pino } from 'pino';
import { eventually } from '../../../test/clients/eventually.ts';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { systemClock } from '../clock.ts';
import type { Database, Migration } from '../database/index.ts';
import {
  decodePosition,
  decodeSyncPosition,
  encodePosition,
  encodeSyncPosition,
  Follower,
  jsonFacts,
  LocalStreams,
  Sequence,
  Stream,
  streamMigrations,
} from './index.ts';

interface NoteTables {
  notes: { position: number; text: string };
}

const notes: Migration = {
  name: 'test/notes',
  async up({ db }) {
    await db.schema
      .createTable('notes')
      .addColumn('position', 'bigint', (column) => column.primaryKey())
      .addColumn('text', 'text', (column) => column.notNull())
      .execute();
  },
};

const log = pino({ level: 'silent' });

forEachDatabase((open) => {
  const openStreams = async (): Promise<[Database, LocalStreams]> => {
    const database = await open([...streamMigrations, notes]);
    return [database, await LocalStreams.open({ database, clock: systemClock, log })];
  };

  const write = (streams: LocalStreams, stream: Stream<string>, text: string) =>
    streams.write<NoteTables, number>(async (writer, publish) => {
      const position = publish(stream, text);
      await writer.insertInto('notes').values({ position, text }).execute();
      return position;
    });

  test('LocalStreams delivers facts after the commit, in the order of their positions', async () => {
    const [database, streams] = await openStreams();
    const stream = new Stream<string>('notes', jsonFacts());
    const seen: [string, number][] = [];
    stream.subscribe((text, position) => seen.push([text, position]));
    const positions = await Promise.all(['a', 'b', 'c'].map((text) => write(streams, stream, text)));
    assert.deepEqual(
      seen.map(([, position]) => position),
      positions.toSorted((x, y) => x - y),
    );
    assert.ok(streams.current >= Math.max(...positions));
    const rows = await database.reader<NoteTables>().selectFrom('notes').selectAll().execute();
    assert.equal(rows.length, 3);
  });

  test('LocalStreams resolves a write after it has delivered its facts and all facts with lower positions', async () => {
    const [database, streams] = await openStreams();
    const stream = new Stream<string>('notes', jsonFacts());
    const seen: string[] = [];
    stream.subscribe((text) => seen.push(text));
    const earlier = streams.reserving((reserve) => reserve(stream));
    const later = write(streams, stream, 'later').then(() => seen.push('answered'));
    // Resolves after the transactions that began before it.
    await database.transaction(async () => undefined);
    await setImmediate();
    assert.deepEqual(seen, []);
    earlier.complete('earlier');
    await later;
    assert.deepEqual(seen, ['earlier', 'later', 'answered']);
  });

  test('LocalStreams publishes nothing of a failed transaction, and delivers later facts', async () => {
    const [, streams] = await openStreams();
    const stream = new Stream<string>('notes', jsonFacts());
    const seen: string[] = [];
    stream.subscribe((text) => seen.push(text));
    const failure = streams.write(async (_writer, publish) => {
      publish(stream, 'never');
      throw new Error('no');
    });
    await assert.rejects(failure, /no/);
    await write(streams, stream, 'after');
    assert.deepEqual(seen, ['after']);
  });

  test('LocalStreams abandons the reservations of work that throws, and delivers later facts', async () => {
    const [, streams] = await openStreams();
    const stream = new Stream<string>('notes', jsonFacts());
    const seen: string[] = [];
    stream.subscribe((text) => seen.push(text));
    const work = () =>
      streams.reserving((reserve) => {
        reserve(stream);
        reserve(stream);
        throw new Error('ids ran out');
      });
    assert.throws(work, /ids ran out/);
    await write(streams, stream, 'after');
    assert.deepEqual(seen, ['after']);
  });

  test('LocalStreams delivers later facts after a statement failed in a transaction that had published a fact', async () => {
    const [, streams] = await openStreams();
    const stream = new Stream<string>('notes', jsonFacts());
    const position = await write(streams, stream, 'first');
    const failing = streams.write<NoteTables, void>(async (writer, publish) => {
      publish(stream, 'second');
      await writer.insertInto('notes').values({ position, text: 'the same key' }).execute();
    });
    await assert.rejects(failing, { name: 'UniqueViolation' });
    assert.equal(await write(streams, stream, 'third'), streams.current);
  });

  test('LocalStreams throws when work that a failed transaction did not await publishes a fact', async () => {
    const [, streams] = await openStreams();
    const stream = new Stream<string>('notes', jsonFacts());
    let late: (() => number) | undefined;
    const failing = streams.write(async (_writer, publish) => {
      late = () => publish(stream, 'late');
      throw new Error('no');
    });
    await assert.rejects(failing, /no/);
    assert.throws(() => late?.(), /has ended/);
    assert.equal(await write(streams, stream, 'after'), streams.current);
  });

  test('LocalStreams delivers a fact to the other listeners, and later facts to all, when one listener throws', async () => {
    const [, streams] = await openStreams();
    const stream = new Stream<string>('notes', jsonFacts());
    const seen: string[] = [];
    const fail = () => {
      throw new Error('a mistake');
    };
    stream.subscribe(fail);
    stream.subscribe((text) => seen.push(text));
    streams.onAdvance(fail);
    const published: unknown[] = [];
    streams.onPublish(fail);
    streams.onPublish(({ facts }) => published.push(...facts.map(({ fact }) => fact)));
    await write(streams, stream, 'first');
    assert.equal(await write(streams, stream, 'second'), streams.current);
    assert.deepEqual(seen, ['first', 'second']);
    assert.deepEqual(published, ['first', 'second']);
  });

  test('LocalStreams and Sequence assign no position and no id twice, even after a crash', async () => {
    const [database, streams] = await openStreams();
    const stream = new Stream<string>('notes', jsonFacts());
    const last = streams.announce(stream, 'in memory only');
    const sequence = await Sequence.open(database, 'things');
    const id = sequence.next();
    const reopened = await open.restart(database);
    assert.ok(
      (await LocalStreams.open({ database: reopened, clock: systemClock, log })).announce(stream, 'after') >
        last,
    );
    assert.ok((await Sequence.open(reopened, 'things')).next() > id);
  });

  test('Sequence assigns 100,000 ids in a row, each once, between single ids', async () => {
    const [database] = await openStreams();
    const sequence = await Sequence.open(database, 'things');
    const ids = [25_000, 60_000, 15_000].flatMap((count) => {
      const single = sequence.next();
      const first = sequence.take(count);
      return [single, ...Array.from({ length: count }, (_, index) => first + index)];
    });
    assert.equal(new Set(ids).size, 100_003);
    await database.transaction(async () => undefined);
    const reopened = await Sequence.open(database, 'things');
    assert.ok(reopened.next() > ids.at(-1)!);
  });

  test('LocalStreams raises the stored bound of positions in time, while it assigns 300,000 positions in a row', async () => {
    const [database, streams] = await openStreams();
    const stream = new Stream<string>('numbers', jsonFacts());
    let last = 0;
    for (let round = 0; round < 30; round++) {
      for (let index = 0; index < 10_000; index++) last = streams.announce(stream, `${index}`);
      await eventually('the raised bound', async () => {
        const { rows } = await sql<{ bound: number }>`select bound from number_bounds`.execute(
          database.reader(),
        );
        return Number(rows[0]!.bound) >= last + 50_000;
      });
    }
    assert.equal(streams.current, last);
  });

  test('Follower handles every fact once, across a stop and a start', async () => {
    const [database, streams] = await openStreams();
    const stream = new Stream<string>('notes', jsonFacts());
    const handled: number[] = [];
    const follow = async (after: number, upTo: number) => {
      const rows = await database
        .reader<NoteTables>()
        .selectFrom('notes')
        .select('position')
        .where('position', '>', after)
        .where('position', '<=', upTo)
        .orderBy('position')
        .execute();
      for (const row of rows) handled.push(row.position);
    };
    const followerDeps = { streams, database, clock: systemClock, log };
    const follower = new Follower(followerDeps, { name: 'test', follow });
    await follower.start();
    const positions: number[] = [];
    for (const text of ['a', 'b', 'c']) positions.push(await write(streams, stream, text));
    await follower.caughtUp();
    assert.deepEqual(handled, positions);
    await follower.stop();
    positions.push(await write(streams, stream, 'while away'));
    const next = new Follower(followerDeps, { name: 'test', follow });
    await next.start();
    await next.caughtUp();
    await next.stop();
    assert.deepEqual(handled, positions);
  });

  test('Follower continues after a crash at the position up to which its work was settled', async () => {
    const [database, streams] = await openStreams();
    const stream = new Stream<string>('notes', jsonFacts());
    const followerDeps = { streams, database, clock: systemClock, log };
    let settled = 0;
    const begun: number[] = [];
    const options = {
      name: 'settling',
      follow: async (after: number) => void begun.push(after),
      settled: () => settled,
    };
    await new Follower(followerDeps, options).start();
    const [first, second] = [await write(streams, stream, 'a'), await write(streams, stream, 'b')];
    const afterCrash = new Follower(followerDeps, options);
    assert.equal(await afterCrash.startingPoint(), 0);
    await afterCrash.start();
    await afterCrash.caughtUp();
    assert.equal(begun.at(-1), 0);
    settled = first;
    await afterCrash.stop();
    assert.ok(second > first);
    assert.equal(await new Follower(followerDeps, options).startingPoint(), first);
  });

  test('Follower handles a fact that arrives at the moment when a run has finished', async () => {
    const [database, streams] = await openStreams();
    const stream = new Stream<string>('notes', jsonFacts());
    const inMicrotasks = async (count: number, then: () => void) => {
      for (let done = 0; done < count; done++) await undefined;
      then();
    };
    for (let count = 0; count < 12; count++) {
      let announced = 0;
      let handled = 0;
      const follow = async (_after: number, upTo: number) => {
        handled = upTo;
        // No other fact follows this one.
        if (announced === 0) {
          announced = -1;
          void inMicrotasks(count, () => (announced = streams.announce(stream, 'late')));
        }
      };
      const followerDeps = { streams, database, clock: systemClock, log };
      const follower = new Follower(followerDeps, { name: `late-${count}`, follow });
      await follower.start();
      streams.announce(stream, 'first');
      const isHandled = () => announced > 0 && handled >= announced;
      await eventually(`a fact ${count} microtasks later`, isHandled);
      await follower.stop();
    }
  });

  test('Follower.caughtUpSoon resolves when the follower has caught up, or after a timeout', async () => {
    const [database, streams] = await openStreams();
    const stream = new Stream<string>('notes', jsonFacts());
    const clock = manualClock();
    const slow = Promise.withResolvers<void>();
    let handled = 0;
    const follow = async (_after: number, upTo: number) => {
      await slow.promise;
      handled = upTo;
    };
    const follower = new Follower({ streams, database, clock, log }, { name: 'slow', follow });
    await follower.start();
    const position = await write(streams, stream, 'a');
    const late = follower.caughtUpSoon();
    clock.advance(5_000);
    await late;
    assert.equal(handled, 0);
    const inTime = follower.caughtUpSoon();
    slow.resolve();
    await inTime;
    assert.equal(handled, position);
    await follower.stop();
  });

  test('Follower runs again after its work has failed', async () => {
    const [database, streams] = await openStreams();
    const stream = new Stream<string>('notes', jsonFacts());
    let attempts = 0;
    const follower = new Follower(
      { streams, database, clock: systemClock, log },
      {
        name: 'failing',
        follow: async () => {
          attempts++;
          if (attempts === 1) throw new Error('not yet');
        },
      },
    );
    await follower.start();
    await write(streams, stream, 'a');
    await follower.caughtUp();
    assert.equal(attempts, 2);
    await follower.stop();
  });
});

test('decodePosition and decodeSyncPosition parse the tokens that this server issues, and reject others with M_INVALID_PARAM', () => {
  assert.equal(decodePosition(encodePosition(4711)), 4711);
  assert.equal(decodePosition('c1_281474976710655_3_4711'), 4711);
  assert.throws(() => decodeSyncPosition('c1_1_3_4711'), { errcode: 'M_INVALID_PARAM' });
  for (const position of [
    { position: 4711, toDevice: 4711 },
    { position: 4711, toDevice: 4600 },
    { position: 0, toDevice: 0 },
  ]) {
    assert.deepEqual(decodeSyncPosition(encodeSyncPosition(position)), position);
    assert.equal(decodePosition(encodeSyncPosition(position)), position.position);
  }
  for (const token of [
    '',
    's1_',
    's1_-1',
    's1_1e3',
    's2_1',
    's2_1_2',
    's2_2_',
    's1_1_1',
    '4711',
    's1_99999999999999999999',
    't1_1_1',
    'c1_1_4711',
    'c1_1_1_9999999999999999',
  ]) {
    assert.throws(() => decodePosition(token), { errcode: 'M_INVALID_PARAM' }, token);
  }
});
