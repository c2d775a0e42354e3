import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../../test/support/servers/server.ts';
import { enc } from '../../../../test/support/users/test-client.ts';
import { membersIn, texts, usersInRoomOn } from '../test/shared-rooms.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`rooms that the user is not joined to, in GET /sync on ${database}`, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer({ database });
    });
    after(() => server.stop());
    const usersInRoom = usersInRoomOn(() => server);

    it('returns stripped state for an invite, and the leave event after the invite is rejected', async () => {
      const { anna, ben } = await usersInRoom(2);
      const roomId = await anna.createRoom({ name: 'Inside', topic: 'Topic' });
      const { next_batch } = await ben.sync();
      await anna.membership('invite', roomId, ben);
      const invited = await ben.sync(next_batch);
      const state = invited.rooms?.invite?.[roomId]?.invite_state.events;
      assert.equal(state?.find(({ type }) => type === 'm.room.name')?.content['name'], 'Inside');
      const memberEventOfBen = state?.find(({ state_key }) => state_key === ben.id);
      assert.deepEqual(
        [memberEventOfBen?.content['membership'], memberEventOfBen?.sender],
        ['invite', anna.id],
      );
      assert.ok(
        memberEventOfBen && 'origin_server_ts' in memberEventOfBen,
        'clients show since when the user is invited',
      );
      const inviter = state?.find(({ state_key }) => state_key === anna.id);
      assert.equal(inviter?.content['membership'], 'join', 'clients show the inviter');
      assert.notEqual((await ben.sync()).rooms?.invite?.[roomId], undefined);
      await anna.say(roomId, 'secret');
      assert.equal((await ben.sync(invited.next_batch)).rooms, undefined);
      await ben.leave(roomId);
      const leftRoom = (await ben.sync(invited.next_batch)).rooms?.leave?.[roomId];
      assert.deepEqual([membersIn(leftRoom?.timeline.events), texts(leftRoom)], [[ben.id], []]);
      assert.equal((await ben.sync()).rooms?.leave, undefined);
    });

    it('returns stripped state for a knock, and the left room after the knock is retracted', async () => {
      const { anna, ben } = await usersInRoom(2);
      const initial_state = [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }];
      const roomId = await anna.createRoom({ name: 'Inside', initial_state });
      const { next_batch } = await ben.sync();
      await ben.knock(roomId);
      const knocked = await ben.sync(next_batch);
      const state = knocked.rooms?.knock?.[roomId]?.knock_state.events;
      assert.equal(state?.find(({ type }) => type === 'm.room.name')?.content['name'], 'Inside');
      await ben.leave(roomId);
      assert.notEqual((await ben.sync(knocked.next_batch)).rooms?.leave?.[roomId], undefined);
    });

    it('returns a room that the user left, or was kicked or banned from, with the events up to that membership event', async () => {
      for (const action of ['leave', 'kick', 'ban'] as const) {
        const { anna, ben, roomId } = await usersInRoom(2);
        const { next_batch } = await ben.sync();
        await anna.say(roomId, 'before');
        if (action === 'leave') await ben.leave(roomId);
        else await anna.membership(action, roomId, ben);
        await anna.say(roomId, 'after');
        await anna.setState(roomId, 'm.room.topic', { topic: 'after' });
        const sync = await ben.sync(next_batch);
        const leftRoom = sync.rooms?.leave?.[roomId];
        assert.deepEqual(
          [texts(leftRoom), membersIn(leftRoom?.timeline.events)],
          [['before'], [ben.id]],
          action,
        );
        assert.doesNotMatch(JSON.stringify(sync), /after/);
        assert.equal((await ben.sync(sync.next_batch)).rooms, undefined);
        const leftRoomsInInitialSync = Object.keys((await ben.sync()).rooms?.leave ?? {});
        assert.deepEqual(leftRoomsInInitialSync, action === 'leave' ? [] : [roomId]);
        const whole = await ben.sync(undefined, { filter: { room: { include_leave: true } } });
        const types = whole.rooms?.leave?.[roomId]?.timeline.events.map(({ type }) => type);
        assert.ok(types?.includes('m.room.message'));
      }
    });

    it('returns the whole room when the user has joined and left since the token', async () => {
      const { anna, ben, cleo, roomId } = await usersInRoom(3);
      await cleo.leave(roomId);
      const { next_batch } = await cleo.sync();
      await cleo.join(roomId);
      for (const word of ['a', 'b']) await anna.say(roomId, word);
      await cleo.leave(roomId);
      const leftRoom = (await cleo.sync(next_batch, { filter: { room: { timeline: { limit: 2 } } } })).rooms
        ?.leave?.[roomId];
      assert.deepEqual(texts(leftRoom), ['b']);
      const members = membersIn(leftRoom?.state?.events);
      assert.deepEqual(members, [anna.id, ben.id, cleo.id].sort());
      // All events since the token are there. `limited` is true because the client lacks the history before the token.
      const wholeTimeline = (await cleo.sync(next_batch)).rooms?.leave?.[roomId]?.timeline;
      assert.deepEqual([wholeTimeline?.events.length, wholeTimeline?.limited], [4, true]);
    });

    it('returns the whole room when the user has joined again', async () => {
      const { anna, ben, roomId } = await usersInRoom(2);
      await ben.do('PUT', `/user/${enc(ben.id)}/rooms/${enc(roomId)}/tags/u.x`, { order: 1 });
      const { next_batch } = await ben.sync();
      await ben.leave(roomId);
      await anna.setState(roomId, 'm.room.topic', { topic: 'in between' });
      await ben.join(roomId);
      const room = (await ben.sync(next_batch, { filter: { room: { timeline: { limit: 1 } } } })).rooms
        ?.join?.[roomId];
      assert.equal(room?.timeline.limited, true);
      assert.ok(room?.state?.events.some(({ type }) => type === 'm.room.topic'));
      assert.ok(room?.state?.events.some(({ type }) => type === 'm.room.create'));
      assert.ok(room?.account_data.events.some(({ type }) => type === 'm.tag'));
    });

    it('returns a forgotten room once as left, and then not again', async () => {
      const { ben, roomId } = await usersInRoom(2);
      const { next_batch } = await ben.sync();
      await ben.leave(roomId);
      await ben.membership('forget', roomId);
      const sync = await ben.sync(next_batch);
      const leftRoom = sync.rooms?.leave?.[roomId];
      assert.deepEqual([leftRoom?.timeline.events.length, leftRoom?.state?.events.length], [1, 0]);
      assert.equal((await ben.sync(sync.next_batch)).rooms, undefined);
      const whole = await ben.sync(undefined, { filter: { room: { include_leave: true } } });
      assert.equal(whole.rooms?.leave?.[roomId], undefined);
    });
  });
}
