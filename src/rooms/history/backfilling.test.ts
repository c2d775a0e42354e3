import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import type { RemoteRoom } from '../../../test/support/rooms/remote-room.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { noFilter } from '../../filters/index.ts';
import { creator, type JoinedRoom, joinedRoom, remoteBob } from '../../room-federation/test/joined-room.ts';

const viewer = { userId: alice, deviceId: 'DEVICE' };
const { timeline: filter } = noFilter.room;

const read = ({ fixture, room }: JoinedRoom, limit: number, from?: string) =>
  fixture.rooms.historyReader.messages(viewer, room.roomId, { direction: 'backward', limit, filter, from });

/** Pages backward to the end. @returns event ids, newest first */
async function readAll(joined: JoinedRoom, limit = 10): Promise<string[]> {
  const ids: string[] = [];
  let from: string | undefined;
  for (let pages = 0; pages < 100; pages++) {
    const page = await read(joined, limit, from);
    ids.push(...page.chunk.map(({ event_id }) => String(event_id)));
    from = page.end;
    if (from === undefined) return ids;
  }
  throw new Error('the history has no end');
}

const sayMessages = (count: number) => (room: RemoteRoom) => {
  for (let index = 0; index < count; index++) room.say(index % 2 ? creator : remoteBob, `message ${index}`);
};

forSelectedDatabases(import.meta.url, (open) => {
  describe('backfilling history from other servers while it is read', () => {
    it('backfills the history of a remote room in order down to m.room.create while a user reads it', async () => {
      for (const version of ['1', '10', '12']) {
        const joined = await joinedRoom(open, { version, prepare: sayMessages(60) });
        const allIds = [...joined.room.events.keys()].toReversed();
        assert.deepEqual(await readAll(joined), allIds, version);
        const requestCount = joined.peers.receivedRequests.length;
        assert.deepEqual(await readAll(joined), allIds, version);
        assert.equal(
          joined.peers.receivedRequests.length,
          requestCount,
          'events that were backfilled once are stored',
        );
        assert.ok(joined.peers.count('backfill') <= 5, `${joined.peers.count('backfill')} requests`);
      }
    });

    it('requests the events before a backward extremity, from the server with the most members first', async () => {
      const joined = await joinedRoom(open, { prepare: (room) => void room.join('@second:b.example') });
      const [prevEventId = ''] = joined.room.get(joined.join).event.prevEventIds;
      await read(joined, 50);
      const [{ server, args } = { server: '', args: [] }] = joined.peers.receivedRequests;
      assert.equal(server, 'b.example');
      assert.deepEqual(args.slice(1, 4), [joined.room.roomId, [prevEventId], 50]);
    });

    it('requests no history from servers that are in backoff or that the server ACL denies', async () => {
      const joined = await joinedRoom(open, {
        prepare(room) {
          for (const user of ['c1', 'c2', 'c3']) room.join(`@${user}:c.example`);
          const content = { allow: ['*'], deny: ['b.example'] };
          room.add({ type: 'm.room.server_acl', sender: creator, stateKey: '', content });
        },
      });
      joined.peers.blocked.add('c.example');
      assert.equal((await readAll(joined)).length, joined.room.events.size);
      assert.deepEqual(
        new Set(joined.peers.receivedRequests.map(({ server }) => server)),
        new Set(['a.example']),
      );
    });

    it('excludes forged events and events that are not ancestors of the backward extremity', async () => {
      const joined = await joinedRoom(open, { prepare: sayMessages(10) });
      const { room, peers, join } = joined;
      const unrelatedId = room.say(creator, 'aside', { prev: [room.get(join).event.prevEventIds[0]!] });
      const realBackfill = peers.events.backfill;
      for (const server of ['a.example', 'b.example']) {
        peers.scripts.set(server, {
          async backfill(_server, roomId, ids, limit) {
            const pdus = await realBackfill('c.example', roomId, ids, limit);
            return [null, ...pdus, ...room.pdus([unrelatedId])];
          },
        });
      }
      const allIds = [...room.events.keys()].filter((id) => id !== unrelatedId);
      assert.deepEqual(await readAll(joined), allIds.toReversed());

      const forged = await joinedRoom(open, {
        prepare: (room) => void room.say(creator, 'forged', { key: newSigningKey('k') }),
      });
      assert.deepEqual(await readAll(forged), [forged.join]);
    });

    it('requests history once for concurrent readers', async () => {
      const joined = await joinedRoom(open, { prepare: sayMessages(20) });
      const pages = await Promise.all([1, 2, 3, 4].map(() => read(joined, 10)));
      assert.equal(joined.peers.count('backfill'), 1);
      for (const { chunk } of pages) assert.equal(chunk.length, 10);
    });

    it('backfills the events of two concurrent calls for different gaps of one room', async () => {
      const joined = await joinedRoom(open, { prepare: sayMessages(10) });
      const { fixture, room, peers, send, statuses } = joined;
      sayMessages(10)(room);
      for (const server of ['a.example', 'b.example'])
        peers.scripts.set(server, { missingEvents: async () => [] });
      const last = room.say(creator, 'after the second gap');
      await send('a.example', last);
      assert.deepEqual(await statuses(last), ['placed']);
      const gaps = await fixture.engine.backwardExtremities(room.roomId);
      assert.equal(gaps.length, 2);
      const backfill = (id: string) => fixture.rooms.incoming.backfill(room.roomId, [id], 5);
      assert.deepEqual(await Promise.all([...gaps, ...gaps].map(backfill)), [true, true, true, true]);
      assert.deepEqual(await statuses(...gaps), ['older', 'older']);
      assert.equal(peers.count('backfill'), 2);
    });

    it('returns a page of messages after 10 seconds while servers do not respond, and its token returns the backfilled events later', async () => {
      const joined = await joinedRoom(open, { prepare: sayMessages(5) });
      const { peers, fixture, join } = joined;
      const { promise: blocked, resolve: unblock } = Promise.withResolvers<void>();
      const realBackfill = peers.events.backfill;
      for (const server of ['a.example', 'b.example']) {
        peers.scripts.set(server, {
          async backfill(_server, ...args) {
            await blocked;
            return realBackfill('c.example', ...args);
          },
        });
      }
      const reading = read(joined, 10);
      while (peers.count('backfill') === 0) await new Promise(setImmediate);
      fixture.clock.advance(10_000);
      const page = await reading;
      assert.deepEqual(
        page.chunk.map(({ event_id }) => event_id),
        [join],
      );
      unblock();
      await fixture.rooms.incoming.settled();
      const restOfHistory = await read(joined, 100, page.end);
      assert.equal(restOfHistory.chunk.length, joined.room.events.size - 1);
      const afterLast = await read(joined, 100, restOfHistory.end);
      assert.deepEqual([afterLast.chunk, afterLast.end], [[], undefined]);
    });

    it('does not request history again for five minutes when no server responds', async () => {
      const joined = await joinedRoom(open, { prepare: sayMessages(5) });
      const { peers, fixture, join } = joined;
      peers.down.add('a.example').add('b.example');
      for (let times = 0; times < 5; times++) assert.deepEqual(await readAll(joined), [join]);
      const requestCount = peers.count('backfill');
      assert.equal(requestCount, 2);
      peers.down.clear();
      fixture.clock.advance(5 * 60_000 + 1);
      assert.equal((await readAll(joined)).length, joined.room.events.size);
    });

    it('backfills history for /context', async () => {
      const joined = await joinedRoom(open, { prepare: sayMessages(10) });
      const { fixture, room, join } = joined;
      const context = await fixture.rooms.historyReader.context(viewer, room.roomId, join, {
        limit: 10,
        filter,
      });
      assert.equal(context.events_before.length, 5);
    });

    it('reads a page with at most 2 queries in a room without other servers', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const page = () =>
        fixture.rooms.historyReader.messages(viewer, roomId, { direction: 'backward', limit: 3, filter });
      await page();
      const { reads, scans } = fixture.database.statistics;
      await page();
      const cost = fixture.database.statistics.reads - reads;
      assert.equal(fixture.database.statistics.scans, scans);
      assert.ok(cost <= 2, `${cost} reads`);
    });
  });

  describe('finding an event by time with the help of other servers', () => {
    it('returns an event of another server where the stored history has a gap', async () => {
      const joined = await joinedRoom(open, { prepare: sayMessages(50) });
      const { fixture, room, peers } = joined;
      const ids = [...room.events.keys()];
      const target = room.get(ids[20]!).event;
      const { eventByTime } = fixture.rooms;
      const find = async (ts: number, direction: 'forward' | 'backward') =>
        (await eventByTime.find({ userId: alice, deviceId: undefined }, room.roomId, ts, direction)).event
          .eventId;
      assert.equal(await find(target.originServerTs - 1, 'forward'), target.eventId);
      const next = room.get(ids[30]!).event;
      assert.equal(await find(next.originServerTs + 1, 'backward'), next.eventId);
      const requestCount = peers.count('timestampToEvent');
      const join = room.get(joined.join).event;
      assert.equal(await find(join.originServerTs + 1, 'backward'), join.eventId);
      assert.equal(
        peers.count('timestampToEvent'),
        requestCount,
        'no request is sent for an event that is stored',
      );
      const context = await fixture.rooms.historyReader.context(viewer, room.roomId, target.eventId, {
        limit: 10,
        filter,
      });
      assert.equal(context.events_before.length, 5);
      assert.deepEqual(new Set(await readAll(joined)), new Set(ids));
    });

    it('returns the stored event when other servers answer wrongly or not at all', async () => {
      const joined = await joinedRoom(open, { prepare: sayMessages(10) });
      const { fixture, room, peers, join } = joined;
      const [first = '', second = ''] = room.events.keys();
      const ts = room.get(first).event.originServerTs - 5;
      for (const server of ['a.example', 'b.example']) {
        peers.scripts.set(server, {
          timestampToEvent: async () => ({ eventId: second, originServerTs: ts }),
        });
      }
      const result = await fixture.rooms.eventByTime.find(
        { userId: alice, deviceId: undefined },
        room.roomId,
        ts,
        'forward',
      );
      assert.equal(result.event.eventId, join);
      peers.down.add('a.example').add('b.example');
      fixture.clock.advance(3_600_000);
      const repeated = await fixture.rooms.eventByTime.find(
        { userId: alice, deviceId: undefined },
        room.roomId,
        ts,
        'forward',
      );
      assert.equal(repeated.event.eventId, second, 'the event that the servers named before is stored');
    });
  });
});
