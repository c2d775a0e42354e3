import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../../test/support/servers/server.ts';
import { SlidingClient } from '../../../../test/support/users/sliding-client.ts';
import { oneList, types } from '../test/one-list.ts';
import { userRegistrationOn } from '../test/register-users.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`memberships in sliding sync, on ${database}`, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer({ database });
    });
    after(() => server.stop());
    const registerUsers = userRegistrationOn(() => server);

    it('returns stripped state for an invite, and the room after the join', async () => {
      const [anna, ben] = await registerUsers('anna', 'ben');
      const client = new SlidingClient(ben!);
      await client.sync(oneList());
      const roomId = await anna!.createRoom({ name: 'Hall', invite: [ben!.id] });
      const invite = (await client.sync(oneList())).rooms[roomId]!;
      assert.equal(invite.membership, 'invite');
      assert.equal(invite.timeline, undefined);
      assert.ok(invite.invite_state?.some(({ type }) => type === 'm.room.name'));
      assert.deepEqual((await client.sync(oneList())).rooms, {});
      await anna!.say(roomId, 'not for guests');
      assert.deepEqual((await client.sync(oneList())).rooms, {});
      await ben!.join(roomId);
      const joined = (await client.sync(oneList())).rooms[roomId]!;
      assert.deepEqual([joined.initial, joined.membership], [true, 'join']);
    });

    it('returns stripped state for a knock', async () => {
      const [anna, ben] = await registerUsers('anna', 'ben');
      const roomId = await anna!.createRoom({
        initial_state: [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }],
      });
      await ben!.knock(roomId);
      const client = new SlidingClient(ben!);
      const knock = (await client.sync(oneList())).rooms[roomId]!;
      assert.equal(knock.membership, 'knock');
      assert.ok(knock.invite_state?.some(({ type }) => type === 'm.room.create'));
    });

    it('returns a left room once, and only on a connection that has sent the room before', async () => {
      const [anna, ben] = await registerUsers('anna', 'ben');
      const roomId = await anna!.createRoom({ preset: 'public_chat' });
      await ben!.join(roomId);
      const client = new SlidingClient(ben!);
      const body = oneList({
        required_state: [
          ['m.room.member', '$ME'],
          ['m.room.topic', ''],
        ],
      });
      await client.sync(body);
      await ben!.leave(roomId);
      await anna!.setState(roomId, 'm.room.topic', { topic: 'among us' });
      await anna!.say(roomId, 'among us');
      const leftRoom = (await client.sync(body)).rooms[roomId]!;
      assert.equal(leftRoom.membership, 'leave');
      assert.deepEqual(types(leftRoom), [`m.room.member ${ben!.id}`]);
      assert.deepEqual(
        leftRoom.timeline?.map(({ content }) => content['membership']),
        ['leave'],
      );
      const after = await client.sync(body);
      assert.deepEqual([after.rooms, after.lists['all']?.count], [{}, 0]);
      assert.equal((await new SlidingClient(ben!, 'other').sync(body)).lists['all']?.count, 0);
    });

    it('returns a room once to a user who was kicked from it, even on a new connection, and not to a user who was banned without having joined it', async () => {
      const [anna, ben, cleo] = await registerUsers('anna', 'ben', 'cleo');
      const roomId = await anna!.createRoom({ preset: 'public_chat', name: 'Hall' });
      await ben!.join(roomId);
      await anna!.membership('kick', roomId, ben!);
      await anna!.membership('ban', roomId, cleo!);
      await anna!.setState(roomId, 'm.room.name', { name: 'Without them' });
      const client = new SlidingClient(ben!);
      const { membership, name, initial } = (await client.sync(oneList())).rooms[roomId]!;
      assert.deepEqual({ membership, name, initial }, { membership: 'leave', name: 'Hall', initial: true });
      assert.deepEqual((await client.sync(oneList())).rooms, {});
      assert.deepEqual((await new SlidingClient(cleo!).sync(oneList())).rooms, {});
    });

    it('returns at most timeline_limit events of a room in which the user was banned after being kicked, and the ban as the last of them', async () => {
      const [anna, ben] = await registerUsers('anna', 'ben');
      const roomId = await anna!.createRoom({ preset: 'public_chat' });
      await ben!.join(roomId);
      for (const membership of ['kick', 'ban'] as const) await anna!.membership(membership, roomId, ben!);
      const memberships = async (timeline_limit: number) => {
        const client = new SlidingClient(ben!, `limit ${timeline_limit}`);
        const { timeline } = (await client.sync(oneList({ timeline_limit }))).rooms[roomId]!;
        return timeline?.map(({ content }) => content['membership']) ?? [];
      };
      assert.deepEqual(await memberships(0), []);
      assert.deepEqual(await memberships(1), ['ban']);
      assert.deepEqual(await memberships(2), ['leave', 'ban']);
    });
  });
}
