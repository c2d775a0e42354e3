import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { alice, bob } from '../../../test/support/rooms/rooms.ts';
import { openUnread, unreadOver } from '../test/unread-under-test.ts';

forEachDatabase((open) => {
  describe('BadgeCounts', () => {
    it('counts rooms with unread notifications, or the notifications, and invites [option: push.group_unread_count_by_room]', async () => {
      const { under, roomId, badge, read, receipts } = await openUnread(open);
      const messages = unreadOver(under, { group_unread_count_by_room: false, receipts });
      const both = async () => [await badge(bob), await messages.badge(bob)];
      assert.deepEqual(await both(), [0, 0]);
      const root = await under.say(alice, roomId, 'one');
      const reply = await under.reply(alice, roomId, root);
      const other = await under.room(alice, bob);
      await under.say(alice, other, 'two');
      assert.deepEqual(await both(), [2, 3]);
      const invited = await under.rooms.creation.create(alice, { invite: [bob] });
      assert.deepEqual(await both(), [3, 4]);
      await read(bob, roomId, root, 'main');
      assert.deepEqual(await both(), [3, 3]);
      await read(bob, roomId, reply);
      assert.deepEqual(await both(), [2, 2]);
      await under.leave(bob, other);
      await under.leave(bob, invited);
      assert.deepEqual(await both(), [0, 0]);
    });

    it('loads only the rooms with unread events after a restart', async () => {
      const { under, read, badge } = await openUnread(open);
      const rooms: string[] = [];
      for (let count = 0; count < 12; count++) {
        const roomId = await under.room(alice, bob);
        rooms.push(roomId);
        await read(bob, roomId, await under.say(alice, roomId, 'read'));
      }
      await under.say(alice, rooms[3]!, 'unread');
      assert.equal(await badge(bob), 1);
      const again = await under.restart(open);
      assert.equal(await unreadOver(again).badge(bob), 1);
      const loaded = rooms.filter((roomId) => again.engine.heads.peek(roomId) !== undefined);
      assert.deepEqual(loaded, [rooms[3]]);
    });
  });
});
