import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { mentions, UnreliableDatabase } from '../../../test/support/databases/unreliable-database.ts';
import { alice, bob, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { timelineBit } from '../sources/source-list.ts';
import { Feeds } from './feeds.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

forSelectedDatabases(import.meta.url, (open) => {
  /** Opens rooms on a disk that can be slow or full. */
  const openRooms = async () => {
    let disk: UnreliableDatabase | undefined;
    const wrapDatabase = (database: ConstructorParameters<typeof UnreliableDatabase>[0]) => {
      disk = new UnreliableDatabase(database);
      return disk;
    };
    const fixture = await RoomsUnderTest.open(open, [], { wrapDatabase });
    assert.ok(disk);
    return { fixture, disk };
  };

  const feedsOf = ({ engine, streams, clock, caches }: RoomsUnderTest, max?: number) =>
    new Feeds({ engine, streams, clock, caches }, max);

  describe('Feeds.wait waits for changes of a feed', () => {
    it('wakes once for two messages that are written one after the other: when both are published', async () => {
      const { fixture, disk } = await openRooms();
      const roomId = await fixture.room(alice, bob);
      const feeds = feedsOf(fixture);
      const feed = await feeds.open(bob);
      const before = fixture.streams.current;
      const writing = delayWriteOf(disk, 'first');
      const woken: number[] = [];
      const waiting = feeds
        .wait(feed, 1e6, new AbortController().signal)
        .then(() => woken.push(fixture.streams.current));
      const first = fixture.say(alice, roomId, 'first');
      const proceed = await writing;
      const firstPosition = newest(fixture, roomId);
      const second = fixture.say(bob, roomId, 'second');
      await until(() => newest(fixture, roomId) > firstPosition);
      proceed();
      await Promise.all([first, second, waiting]);
      const last = await fixture.positionOf(await second);
      assert.deepEqual(woken, [last]);
      assert.equal(feed.changes(before, last)?.rooms.get(roomId), timelineBit);
    });

    it('wakes for a published message although the next message could not be stored', async () => {
      const { fixture, disk } = await openRooms();
      const roomId = await fixture.room(alice, bob);
      const feeds = feedsOf(fixture);
      const feed = await feeds.open(bob);
      const before = fixture.streams.current;
      const writing = delayWriteOf(disk, 'first');
      disk.fails = (statements) => mentions(statements, 'second');
      let isWoken = false;
      const waiting = feeds.wait(feed, 1e6, new AbortController().signal).then(() => {
        isWoken = true;
      });
      const first = fixture.say(alice, roomId, 'first');
      const proceed = await writing;
      const firstPosition = newest(fixture, roomId);
      const second = assert.rejects(fixture.say(bob, roomId, 'second'), /full/);
      await until(() => newest(fixture, roomId) > firstPosition);
      proceed();
      await Promise.all([first, second]);
      await turn();
      assert.equal(
        isWoken,
        false,
        'it wakes only after a delay, because the second message might have followed',
      );
      fixture.clock.advance(50);
      await waiting;
      assert.equal(feed.changes(before, fixture.streams.current)?.rooms.get(roomId), timelineBit);
    });

    it('resolves at once for a feed that was dropped from memory', { timeout: 120_000 }, async () => {
      const { fixture } = await openRooms();
      const roomId = await fixture.room(alice, bob);
      const feeds = feedsOf(fixture, 1);
      const feed = await feeds.open(bob);
      const { signal } = new AbortController();
      const waiting = feeds.wait(feed, 1e6, signal);
      await feeds.open(alice);
      await waiting;
      // The request that waits here opened the feed before it was dropped.
      await feeds.wait(feed, 1e6, signal);
      const reopened = await feeds.open(bob);
      assert.notEqual(reopened, feed);
      const woken = feeds.wait(reopened, 1e6, signal);
      await fixture.say(alice, roomId, 'hello');
      await woken;
    });
  });
});

/** Resolves when a text is about to be written, with a function that lets the write go on. */
function delayWriteOf(disk: UnreliableDatabase, text: string): Promise<() => void> {
  return new Promise((resolve) => {
    disk.delay = (statements) =>
      mentions(statements, text) ? new Promise((proceed) => resolve(proceed)) : undefined;
  });
}

/** Returns the position of the newest event of a room, which is possibly not on disk yet. */
const newest = ({ engine }: RoomsUnderTest, roomId: string) =>
  engine.heads.peek(roomId)?.recent.at(-1)?.stream ?? 0;

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}
