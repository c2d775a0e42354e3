import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice } from '../../../test/support/rooms/rooms.ts';
import { noFilter } from '../../filters/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';
import { creator, type JoinedRoom, joinedRoom, remoteBob } from '../test/joined-room.ts';

const minute = 60_000;
const day = 24 * 3_600_000;

/** Adds events to the room without sending them to this server. @returns the event ids */
function addUnreceived({ room }: JoinedRoom, count: number): string[] {
  return Array.from({ length: count }, (_, index) => room.say(index % 2 ? creator : remoteBob, `${index}`));
}

/** Returns the number of missing events that are still to be backfilled in the background. */
async function countMissing({ fixture }: JoinedRoom): Promise<number> {
  const reader = fixture.database.reader<RoomTables>();
  const rows = await reader
    .selectFrom('backward_extremities')
    .select('event_id')
    .where('backfills_left', 'is not', null)
    .execute();
  return rows.length;
}

/** Advances the clock in steps until no missing event is still to be backfilled. */
async function untilBackfillEnds(joined: JoinedRoom, step = minute, maxSteps = 300): Promise<void> {
  const { fixture } = joined;
  for (let steps = 0; steps < maxSteps && (await countMissing(joined)) > 0; steps++) {
    fixture.clock.advance(step);
    await fixture.rooms.incoming.settled();
  }
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('MissedHistory backfills events that this server has missed', () => {
    it('backfills gaps of any width, even if no client reads the missing events', async () => {
      const joined = await joinedRoom(open, { prepare: (room) => void room.say(creator, 'before') });
      const messages = addUnreceived(joined, 520);
      await joined.send('b.example', messages.at(-1)!);
      // The sent event and 200 events before it, which get_missing_events returns, are placed.
      assert.equal((await joined.statuses(...messages)).filter((status) => status !== 'placed').length, 319);
      await untilBackfillEnds(joined);
      const statuses = await joined.statuses(...messages);
      assert.deepEqual(new Set(statuses), new Set(['older', 'placed']));
      assert.equal(await countMissing(joined), 0);
      const requests = joined.peers.count('backfill');
      assert.ok(requests <= 5, `${requests} requests`);
      const page = await joined.fixture.rooms.historyReader.messages(
        { userId: alice, deviceId: 'DEVICE' },
        joined.room.roomId,
        { direction: 'backward', limit: 520, filter: noFilter.room.timeline },
      );
      assert.deepEqual(
        page.chunk.map(({ event_id }) => event_id),
        messages.toReversed(),
      );
    });

    it('resumes the backfill of gaps after a restart', async () => {
      const joined = await joinedRoom(open);
      const messages = addUnreceived(joined, 320);
      await joined.send('b.example', messages.at(-1)!);
      const restarted = await joined.restart();
      assert.ok((await countMissing(restarted)) > 0);
      restarted.fixture.rooms.incoming.start();
      await restarted.fixture.rooms.incoming.settled();
      await untilBackfillEnds(restarted);
      assert.deepEqual(new Set(await restarted.statuses(...messages)), new Set(['older', 'placed']));
    });

    it('backfills in the background only events that were sent while this server was in the room', async () => {
      const joined = await joinedRoom(open, {
        prepare: (room) => {
          for (let index = 0; index < 250; index++) room.say(creator, `before ${index}`);
        },
      });
      const { room, fixture, peers } = joined;
      fixture.clock.advance(day);
      await fixture.rooms.incoming.settled();
      assert.equal(peers.count('backfill'), 0);
      // This event is on a fork of the history from before this server joined.
      const [before = ''] = room.get(joined.join).event.prevEventIds;
      const aside = room.say(creator, 'aside', { prev: [...room.get(before).event.prevEventIds] });
      await joined.send('a.example', aside);
      await untilBackfillEnds(joined);
      assert.equal(peers.count('backfill'), 0);
      assert.equal(await countMissing(joined), 0);
    });

    it('stops backfilling a gap after at most 14 requests to each server, until a client reads the missing events', async () => {
      const joined = await joinedRoom(open);
      const messages = addUnreceived(joined, 300);
      for (const server of ['a.example', 'b.example'])
        joined.peers.scripts.set(server, { backfill: async () => [] });
      await joined.send('b.example', messages.at(-1)!);
      await untilBackfillEnds(joined, 3_600_000, 24 * 30);
      assert.equal(await countMissing(joined), 0);
      const [a, b] = [
        joined.peers.count('backfill', 'a.example'),
        joined.peers.count('backfill', 'b.example'),
      ];
      assert.ok(a > 5 && a <= 14 && b > 5 && b <= 14, `${a} and ${b} requests`);
      joined.peers.scripts.clear();
      joined.fixture.clock.advance(day);
      assert.equal(joined.peers.count('backfill'), a + b);
      await joined.fixture.rooms.incoming.backfill(
        joined.room.roomId,
        await joined.fixture.engine.backwardExtremities(joined.room.roomId),
        100,
      );
      assert.ok(joined.peers.count('backfill') > a + b);
    });

    it('limits the number of requests to servers that always return one more event', async () => {
      const joined = await joinedRoom(open);
      const messages = addUnreceived(joined, 400);
      for (const server of ['a.example', 'b.example']) {
        joined.peers.scripts.set(server, {
          backfill: async (_server, _roomId, eventIds) => joined.room.pdus(eventIds),
        });
      }
      await joined.send('b.example', messages.at(-1)!);
      await untilBackfillEnds(joined);
      assert.equal(await countMissing(joined), 0);
      assert.equal(joined.peers.count('backfill'), 100);
      assert.equal((await joined.statuses(...messages)).filter((status) => status === 'older').length, 100);
    });
  });
});
