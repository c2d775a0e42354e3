import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { sql } from 'kysely';
import { eventually } from '../../../test/clients/eventually.ts';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { systemClock } from '../clock.ts';
import { silentLogger } from '../observability/index.ts';
import { jsonFacts, LocalStreams, Sequence, Stream } from './index.ts';
import { type NoteTables, openStreams, writeNote } from './test/notes.ts';

forEachDatabase((open) => {
  test('LocalStreams delivers facts after the commit, in the order of their positions', async () => {
    const [database, streams] = await openStreams(open);
    const stream = new Stream<string>('notes', jsonFacts());
    const seen: [string, number][] = [];
    stream.subscribe((text, position) => seen.push([text, position]));
    const positions = await Promise.all(['a', 'b', 'c'].map((text) => writeNote(streams, stream, text)));
    assert.deepEqual(
      seen.map(([, position]) => position),
      positions.toSorted((x, y) => x - y),
    );
    assert.ok(streams.current >= Math.max(...positions));
    const rows = await database.reader<NoteTables>().selectFrom('notes').selectAll().execute();
    assert.equal(rows.length, 3);
  });

  test('LocalStreams resolves a write after it has delivered its facts and all facts with lower positions', async () => {
    const [database, streams] = await openStreams(open);
    const stream = new Stream<string>('notes', jsonFacts());
    const seen: string[] = [];
    stream.subscribe((text) => seen.push(text));
    const earlier = streams.reserving((reserve) => reserve(stream));
    const later = writeNote(streams, stream, 'later').then(() => seen.push('answered'));
    // Resolves after the transactions that began before it.
    await database.transaction(async () => undefined);
    await setImmediate();
    assert.deepEqual(seen, []);
    earlier.complete('earlier');
    await later;
    assert.deepEqual(seen, ['earlier', 'later', 'answered']);
  });

  test('LocalStreams publishes nothing of a failed transaction, and delivers later facts', async () => {
    const [, streams] = await openStreams(open);
    const stream = new Stream<string>('notes', jsonFacts());
    const seen: string[] = [];
    stream.subscribe((text) => seen.push(text));
    const failure = streams.write(async (_writer, publish) => {
      publish(stream, 'never');
      throw new Error('no');
    });
    await assert.rejects(failure, /no/);
    await writeNote(streams, stream, 'after');
    assert.deepEqual(seen, ['after']);
  });

  test('LocalStreams abandons the reservations of work that throws, and delivers later facts', async () => {
    const [, streams] = await openStreams(open);
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
    await writeNote(streams, stream, 'after');
    assert.deepEqual(seen, ['after']);
  });

  test('LocalStreams delivers later facts after a statement failed in a transaction that had published a fact', async () => {
    const [, streams] = await openStreams(open);
    const stream = new Stream<string>('notes', jsonFacts());
    const position = await writeNote(streams, stream, 'first');
    const failing = streams.write<NoteTables, void>(async (writer, publish) => {
      publish(stream, 'second');
      await writer.insertInto('notes').values({ position, text: 'the same key' }).execute();
    });
    await assert.rejects(failing, { name: 'UniqueViolation' });
    assert.equal(await writeNote(streams, stream, 'third'), streams.current);
  });

  test('LocalStreams throws when work that a failed transaction did not await publishes a fact', async () => {
    const [, streams] = await openStreams(open);
    const stream = new Stream<string>('notes', jsonFacts());
    let late: (() => number) | undefined;
    const failing = streams.write(async (_writer, publish) => {
      late = () => publish(stream, 'late');
      throw new Error('no');
    });
    await assert.rejects(failing, /no/);
    assert.throws(() => late?.(), /has ended/);
    assert.equal(await writeNote(streams, stream, 'after'), streams.current);
  });

  test('LocalStreams delivers a fact to the other listeners, and later facts to all, when one listener throws', async () => {
    const [, streams] = await openStreams(open);
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
    await writeNote(streams, stream, 'first');
    assert.equal(await writeNote(streams, stream, 'second'), streams.current);
    assert.deepEqual(seen, ['first', 'second']);
    assert.deepEqual(published, ['first', 'second']);
  });

  test('LocalStreams and Sequence assign no position and no id twice, even after a crash', async () => {
    const [database, streams] = await openStreams(open);
    const stream = new Stream<string>('notes', jsonFacts());
    const last = streams.announce(stream, 'in memory only');
    const sequence = await Sequence.open(database, 'things');
    const id = sequence.next();
    const reopened = await open.restart(database);
    const reopenedStreams = await LocalStreams.open({
      database: reopened,
      clock: systemClock,
      log: silentLogger,
    });
    assert.ok(reopenedStreams.announce(stream, 'after') > last);
    assert.ok((await Sequence.open(reopened, 'things')).next() > id);
  });

  test('LocalStreams keeps the stored bound at least 50,000 above the last position while it assigns 300,000 positions', async () => {
    const [database, streams] = await openStreams(open);
    const stream = new Stream<string>('numbers', jsonFacts());
    let last = 0;
    for (let round = 0; round < 30; round++) {
      for (let index = 0; index < 10_000; index++) last = streams.announce(stream, `${index}`);
      await eventually('the raised bound, and the delivery of all positions', async () => {
        const { rows } = await sql<{ bound: number }>`select bound from number_bounds`.execute(
          database.reader(),
        );
        return Number(rows[0]!.bound) >= last + 50_000 && streams.current === last;
      });
    }
  });
});
