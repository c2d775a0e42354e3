import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { systemClock } from '../clock.ts';
import { silentLogger as log } from '../observability/index.ts';
import { Follower, jsonFacts, Stream } from './index.ts';
import { type NoteTables, openStreams, writeNote } from './test/notes.ts';

forEachDatabase((open) => {
  test('Follower handles every fact once, across a stop and a start', async () => {
    const [database, streams] = await openStreams(open);
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
    for (const text of ['a', 'b', 'c']) positions.push(await writeNote(streams, stream, text));
    await follower.caughtUp();
    assert.deepEqual(handled, positions);
    await follower.stop();
    positions.push(await writeNote(streams, stream, 'while away'));
    const next = new Follower(followerDeps, { name: 'test', follow });
    await next.start();
    await next.caughtUp();
    await next.stop();
    assert.deepEqual(handled, positions);
  });

  test('Follower continues after a crash at the position up to which its work was settled', async () => {
    const [database, streams] = await openStreams(open);
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
    const [first, second] = [await writeNote(streams, stream, 'a'), await writeNote(streams, stream, 'b')];
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
    const [database, streams] = await openStreams(open);
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
        // Announces a single late fact, so that no further fact makes the follower run again.
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
    const [database, streams] = await openStreams(open);
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
    const position = await writeNote(streams, stream, 'a');
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
    const [database, streams] = await openStreams(open);
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
    await writeNote(streams, stream, 'a');
    await follower.caughtUp();
    assert.equal(attempts, 2);
    await follower.stop();
  });
});
