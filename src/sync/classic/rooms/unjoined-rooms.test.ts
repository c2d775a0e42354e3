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
    const people = usersInRoomOn(() => server);

    it('returns stripped state for an invite, and the room after it is accepted or rejected', async () => {
      const { anna, ben } = await people(2);
      const roomId = await anna.createRoom({ name: 'Inside', topic: 'Topic' });
      const { next_batch } = await ben.sync();
      await anna.membership('invite', roomId, ben);
      const invited = await ben.sync(next_batch);
      const state = invited.rooms?.invite?.[roomId]?.invite_state.events;
      assert.equal(state?.find(({ type }) => type === 'm.room.name')?.content['name'], 'Inside');
      const own = state?.find(({ state_key }) => state_key === ben.id);
      assert.deepEqual([own?.content['membership'], own?.sender], ['invite', anna.id]);
      assert.ok(own && 'origin_server_ts' in own, 'clients show since when the user is invited');
      const inviter = state?.find(({ state_key }) => state_key === anna.id);
      assert.equal(inviter?.content['membership'], 'join', 'clients show the inviter');
      assert.notEqual((await ben.sync()).rooms?.invite?.[roomId], undefined);
      await anna.say(roomId, 'secret');
      assert.equal((await ben.sync(invited.next_batch)).rooms, undefined);
      await ben.leave(roomId);
      const left = (await ben.sync(invited.next_batch)).rooms?.leave?.[roomId];
      assert.deepEqual([membersIn(left?.timeline.events), texts(left)], [[ben.id], []]);
      assert.equal((await ben.sync()).rooms?.leave, undefined);
    });

    it('returns stripped state for a knock until it is answered', async () => {
      const { anna, ben } = await people(2);
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

    it('returns a left, kicked or banned room with the events before, and none after', async () => {
      for (const action of ['leave', 'kick', 'ban'] as const) {
        const { anna, ben, roomId } = await people(2);
        const { next_batch } = await ben.sync();
        await anna.say(roomId, 'before');
        if (action === 'leave') await ben.leave(roomId);
        else await anna.membership(action, roomId, ben);
        await anna.say(roomId, 'after');
        await anna.setState(roomId, 'm.room.topic', { topic: 'after' });
        const sync = await ben.sync(next_batch);
        const left = sync.rooms?.leave?.[roomId];
        assert.deepEqual([texts(left), membersIn(left?.timeline.events)], [['before'], [ben.id]], action);
        assert.doesNotMatch(JSON.stringify(sync), /after/);
        assert.equal((await ben.sync(sync.next_batch)).rooms, undefined);
        const anew = Object.keys((await ben.sync()).rooms?.leave ?? {});
        assert.deepEqual(anew, action === 'leave' ? [] : [roomId]);
        const whole = await ben.sync(undefined, { filter: { room: { include_leave: true } } });
        const types = whole.rooms?.leave?.[roomId]?.timeline.events.map(({ type }) => type);
        assert.ok(types?.includes('m.room.message'));
      }
    });

    it('returns the whole room when the user has joined and left since the token', async () => {
      const { anna, ben, cleo, roomId } = await people(3);
      await cleo.leave(roomId);
      const { next_batch } = await cleo.sync();
      await cleo.join(roomId);
      for (const word of ['a', 'b']) await anna.say(roomId, word);
      await cleo.leave(roomId);
      const left = (await cleo.sync(next_batch, { filter: { room: { timeline: { limit: 2 } } } })).rooms
        ?.leave?.[roomId];
      assert.deepEqual(texts(left), ['b']);
      const members = membersIn(left?.state?.events);
      assert.deepEqual(members, [anna.id, ben.id, cleo.id].sort());
    });

    it('returns the whole room when the user has joined again', async () => {
      const { anna, ben, roomId } = await people(2);
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
      const { ben, roomId } = await people(2);
      const { next_batch } = await ben.sync();
      await ben.leave(roomId);
      await ben.membership('forget', roomId);
      const sync = await ben.sync(next_batch);
      const left = sync.rooms?.leave?.[roomId];
      assert.deepEqual([left?.timeline.events.length, left?.state?.events.length], [1, 0]);
      assert.equal((await ben.sync(sync.next_batch)).rooms, undefined);
      const whole = await ben.sync(undefined, { filter: { room: { include_leave: true } } });
      assert.equal(whole.rooms?.leave?.[roomId], undefined);
    });
  });
}
