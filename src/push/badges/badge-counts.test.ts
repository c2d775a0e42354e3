import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob } from '../../../test/support/rooms/rooms.ts';
import { openUnread, unreadOver } from '../test/unread-under-test.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('BadgeCounts', () => {
    it('counts invites, and either the rooms with unread notifications or the notifications themselves [option: push.group_unread_count_by_room]', async () => {
      const { fixture, roomId, badge, read, receipts } = await openUnread(open);
      const countingMessages = unreadOver(fixture, { group_unread_count_by_room: false, receipts });
      const roomAndMessageCounts = async () => [await badge(bob), await countingMessages.badge(bob)];
      assert.deepEqual(await roomAndMessageCounts(), [0, 0]);
      const root = await fixture.say(alice, roomId, 'one');
      const reply = await fixture.reply(alice, roomId, root);
      const otherRoom = await fixture.room(alice, bob);
      await fixture.say(alice, otherRoom, 'two');
      assert.deepEqual(await roomAndMessageCounts(), [2, 3]);
      const invited = await fixture.rooms.creation.create(alice, { invite: [bob] });
      assert.deepEqual(await roomAndMessageCounts(), [3, 4]);
      await read(bob, roomId, root, 'main');
      assert.deepEqual(await roomAndMessageCounts(), [3, 3]);
      await read(bob, roomId, reply);
      assert.deepEqual(await roomAndMessageCounts(), [2, 2]);
      await fixture.leave(bob, otherRoom);
      await fixture.leave(bob, invited);
      assert.deepEqual(await roomAndMessageCounts(), [0, 0]);
    });

    it('reads each invite event once, and checks once for each sender whether the user allows invites', async () => {
      let decisions = 0;
      const invitePolicy = {
        decide: async () => {
          decisions += 1;
          return 'allow' as const;
        },
      };
      const { fixture, badge } = await openUnread(open, { invitePolicy });
      const readNids: number[] = [];
      const { getMany } = fixture.engine.events;
      fixture.engine.events.getMany = (nids) => {
        readNids.push(...nids);
        return getMany.call(fixture.engine.events, nids);
      };
      for (let count = 0; count < 5; count++) await fixture.rooms.creation.create(alice, { invite: [bob] });
      decisions = 0;
      readNids.length = 0;
      assert.equal(await badge(bob), 5);
      assert.deepEqual([decisions, new Set(readNids).size], [1, 5]);
      readNids.length = 0;
      assert.equal(await badge(bob), 5);
      assert.deepEqual(readNids, []);
    });

    it('counts a room that the user joins during a count only in the next count', async () => {
      const { fixture, badge } = await openUnread(open);
      const { userRooms } = fixture.engine;
      const loadRooms = userRooms.of.bind(userRooms);
      let isFirst = true;
      userRooms.of = async (userId) => {
        const rooms = await loadRooms(userId);
        if (!isFirst || userId !== bob) return rooms;
        isFirst = false;
        const roomsBeforeJoin = new Map(rooms);
        const joined = await fixture.room(alice, bob);
        await fixture.say(alice, joined, 'unread');
        return roomsBeforeJoin;
      };
      assert.equal(await badge(bob), 0);
      assert.equal(await badge(bob), 1);
    });

    it('loads into memory, after a restart, only the rooms with unread events', async () => {
      const { fixture, read, badge } = await openUnread(open);
      const rooms: string[] = [];
      for (let count = 0; count < 12; count++) {
        const roomId = await fixture.room(alice, bob);
        rooms.push(roomId);
        await read(bob, roomId, await fixture.say(alice, roomId, 'read'));
      }
      await fixture.say(alice, rooms[3]!, 'unread');
      assert.equal(await badge(bob), 1);
      const restarted = await fixture.restart(open);
      assert.equal(await unreadOver(restarted).badge(bob), 1);
      const loaded = rooms.filter((roomId) => restarted.engine.heads.peek(roomId) !== undefined);
      assert.deepEqual(loaded, [rooms[3]]);
    });
  });
});
