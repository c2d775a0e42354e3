import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { noFilter } from '../../../filters/index.ts';
import { readTimeline } from './timeline.ts';

const messageCount = 60;

forSelectedDatabases(import.meta.url, (open) => {
  describe('the timeline of a room in a sync (readTimeline)', () => {
    /**
     * Returns the timeline of a client that requests 100 events of a room, after a restart.
     * @param length characters of each of the 60 messages
     */
    const timelineOf = async (length: number) => {
      const before = await RoomsUnderTest.open(open);
      const roomId = await before.room(alice);
      const since = before.streams.current;
      for (let index = 0; index < messageCount; index++)
        await before.say(alice, roomId, `${index} ${'x'.repeat(length)}`);
      const { engine, rooms, streams } = await before.restart(open);
      const head = await engine.heads.get(roomId);
      assert.ok(head);
      const source = { engine, relations: rooms.clientEvents.relations };
      const range = { userId: alice, after: since, upTo: streams.current, limit: 100, view: undefined };
      const { events, limited } = await readTimeline(source, head, noFilter, range);
      const numbers = events.map(({ stored }) => Number.parseInt(String(stored.event.content['body']), 10));
      return { numbers, limited };
    };

    it('has all new events when they are short', async () => {
      const { numbers, limited } = await timelineOf(10);
      assert.deepEqual([numbers.length, limited], [messageCount, false]);
    });

    it('is limited to the newest events when all new events together have several megabytes', async () => {
      const { numbers, limited } = await timelineOf(50_000);
      assert.ok(limited);
      assert.ok(numbers.length >= 10 && numbers.length < messageCount, `${numbers.length} events`);
      assert.deepEqual(numbers, [...Array(messageCount).keys()].slice(-numbers.length));
    });
  });
});
