import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../../test/support/servers/server.ts';
import { SlidingClient, type SlidingRoomJson } from '../../../../test/support/users/sliding-client.ts';
import { bodies, oneList, types } from '../test/one-list.ts';
import { userRegistrationOn } from '../test/register-users.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`rooms in sliding sync, on ${database}`, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer({ database });
    });
    after(() => server.stop());
    const registerUsers = userRegistrationOn(() => server);

    it('returns a whole room once, and then only its changes', async () => {
      const [anna, ben] = await registerUsers('anna', 'ben');
      const roomId = await anna!.createRoom({ preset: 'public_chat', name: 'Hall' });
      await ben!.join(roomId);
      await ben!.say(roomId, 'one');
      const client = new SlidingClient(anna!);
      const body = oneList({ required_state: [['m.room.create', '']] });
      const first = (await client.sync(body)).rooms[roomId]!;
      assert.deepEqual(types(first), ['m.room.create ']);
      const { initial, membership, name, joined_count, invited_count, limited, num_live } = first;
      assert.deepEqual(
        { initial, membership, name, joined_count, invited_count, limited, num_live },
        {
          initial: true,
          membership: 'join',
          name: 'Hall',
          joined_count: 2,
          invited_count: 0,
          limited: true,
          num_live: 0,
        },
      );
      assert.equal(first.notification_count, 1);
      await ben!.say(roomId, 'two');
      const second = (await client.sync(body)).rooms[roomId]!;
      assert.deepEqual(bodies(second), ['two']);
      assert.deepEqual(types(second), []);
      assert.equal(second.num_live, 1);
      assert.equal(second.limited, false);
      assert.equal(second.initial, undefined);
      assert.equal(second.name, undefined);
      assert.equal(second.notification_count, 2);
      assert.ok(second.bump_stamp! > first.bump_stamp!);
      for (const text of ['3', '4', '5', '6']) await ben!.say(roomId, text);
      const third = (await client.sync(body)).rooms[roomId]!;
      assert.deepEqual([bodies(third), third.limited], [['4', '5', '6'], true]);
      const page = await anna!.do('GET', `/rooms/${encodeURIComponent(roomId)}/messages`, undefined, {
        dir: 'b',
        from: third.prev_batch!,
        limit: 1,
      });
      assert.equal((page['chunk'] as { content: { body: string } }[])[0]?.content.body, '3');
    });

    it('returns heroes of a room without a name, and a null name when the name is removed', async () => {
      const [anna, ben] = await registerUsers('anna', 'ben');
      const roomId = await anna!.createRoom({ preset: 'public_chat', name: 'Hall' });
      await ben!.join(roomId);
      const client = new SlidingClient(anna!);
      const { heroes, name } = (await client.sync(oneList())).rooms[roomId]!;
      assert.deepEqual([name, heroes], ['Hall', undefined]);
      await anna!.setState(roomId, 'm.room.avatar', { url: 'mxc://test/image' });
      assert.equal((await client.sync(oneList())).rooms[roomId]?.avatar, 'mxc://test/image');
      await anna!.setState(roomId, 'm.room.name', {});
      const nameless = (await client.sync(oneList())).rooms[roomId]!;
      assert.equal(nameless.name, null);
      assert.equal(nameless.avatar, undefined);
      assert.deepEqual(
        nameless.heroes?.map(({ user_id }) => user_id),
        [ben!.id],
      );
      await anna!.setState(roomId, 'm.room.avatar', {});
      assert.equal((await client.sync(oneList())).rooms[roomId]?.avatar, null);
    });

    it('does not raise the bump_stamp of a room when its topic changes, also after a restart', async () => {
      const [anna] = await registerUsers('anna');
      const roomId = await anna!.createRoom();
      await anna!.say(roomId, 'hello');
      const client = new SlidingClient(anna!);
      const stamp = (await client.sync(oneList())).rooms[roomId]?.bump_stamp;
      await anna!.setState(roomId, 'm.room.topic', { topic: 'quiet' });
      assert.equal((await client.sync(oneList())).rooms[roomId]?.bump_stamp, stamp);
      await server.restart();
      await anna!.setState(roomId, 'm.room.topic', { topic: 'quieter' });
      assert.equal((await client.sync(oneList())).rooms[roomId]?.bump_stamp, stamp);
    });

    it('returns a subscribed room without any list, and no room that the user has not joined', async () => {
      const [anna, ben] = await registerUsers('anna', 'ben');
      const roomId = await anna!.createRoom();
      const roomOfBen = await ben!.createRoom();
      const subscription = { timeline_limit: 1, required_state: [['m.room.member', '$ME']] };
      const body = { room_subscriptions: { [roomId]: subscription, [roomOfBen]: subscription } };
      const answer = await new SlidingClient(anna!).sync(body);
      assert.deepEqual(Object.keys(answer.rooms), [roomId]);
      assert.deepEqual(types(answer.rooms[roomId]), [`m.room.member ${anna!.id}`]);
      assert.equal(answer.rooms[roomId]?.lists, undefined);
    });

    it('returns more events and state of a room when a later request raises timeline_limit and adds required_state', async () => {
      const [anna] = await registerUsers('anna');
      const roomId = await anna!.createRoom({ topic: 'the topic' });
      for (const text of ['1', '2', '3', '4']) await anna!.say(roomId, text);
      const client = new SlidingClient(anna!);
      await client.sync(oneList({ timeline_limit: 1 }));
      const deep = { timeline_limit: 3, required_state: [['m.room.topic', '']] };
      const body = { ...oneList({ timeline_limit: 1 }), room_subscriptions: { [roomId]: deep } };
      const room = (await client.sync(body)).rooms[roomId];
      assert.deepEqual(bodies(room), ['2', '3', '4']);
      assert.equal(room?.unstable_expanded_timeline, true);
      assert.equal(room?.initial, undefined);
      assert.equal(room?.num_live, 0);
      assert.deepEqual(types(room), ['m.room.topic ']);
      assert.deepEqual((await client.sync(oneList({ timeline_limit: 1 }))).rooms, {});
      await anna!.say(roomId, '5');
      assert.deepEqual(bodies((await client.sync(oneList({ timeline_limit: 3 }))).rooms[roomId]), ['5']);
    });

    it('accepts the pos of a response as a pagination token of GET /messages and other endpoints', async () => {
      const [anna] = await registerUsers('anna');
      const roomId = await anna!.createRoom();
      const root = await anna!.say(roomId, 'root');
      const reply = { 'm.relates_to': { rel_type: 'm.thread', event_id: root } };
      const say = (body: string) =>
        anna!.send(roomId, 'm.room.message', { msgtype: 'm.text', body, ...reply });
      await say('before');
      const from = (await new SlidingClient(anna!).sync(oneList({ timeline_limit: 1 }))).pos;
      await say('after');
      const page = async (path: string, dir: string) => {
        const { body } = await anna!.request('GET', path, undefined, { dir, from, limit: 1 });
        return (body['chunk'] as { content: { body?: string } }[]).map(({ content }) => content.body);
      };
      const room = encodeURIComponent(roomId);
      const messages = `/_matrix/client/v3/rooms/${room}/messages`;
      const relations = `/_matrix/client/v1/rooms/${room}/relations/${encodeURIComponent(root)}`;
      for (const path of [messages, relations]) {
        assert.deepEqual(await page(path, 'b'), ['before'], path);
        assert.deepEqual(await page(path, 'f'), ['after'], path);
      }
    });

    it('returns the memberships that the timeline of a room needs', async () => {
      const [anna, ben, cleo] = await registerUsers('anna', 'ben', 'cleo');
      const roomId = await anna!.createRoom({ preset: 'public_chat' });
      for (const person of [ben!, cleo!]) await person.join(roomId);
      await ben!.say(roomId, 'hello');
      const body = oneList({
        timeline_limit: 1,
        required_state: [
          ['*', '*'],
          ['m.room.member', '$LAZY'],
        ],
      });
      const membersIn = (room: SlidingRoomJson | undefined) =>
        types(room).filter((type) => type.startsWith('m.room.member'));
      const client = new SlidingClient(anna!);
      const first = (await client.sync(body)).rooms[roomId];
      assert.deepEqual(membersIn(first), [`m.room.member ${ben!.id}`]);
      assert.ok(types(first).includes('m.room.power_levels '));
      await ben!.say(roomId, 'again');
      assert.deepEqual(membersIn((await client.sync(body)).rooms[roomId]), []);
      await cleo!.say(roomId, 'here');
      assert.deepEqual(membersIn((await client.sync(body)).rooms[roomId]), [`m.room.member ${cleo!.id}`]);
    });

    it('leaves out events of ignored users', async () => {
      const [anna, ben] = await registerUsers('anna', 'ben');
      const roomId = await anna!.createRoom({ preset: 'public_chat' });
      await ben!.join(roomId);
      const path = `/user/${encodeURIComponent(anna!.id)}/account_data/m.ignored_user_list`;
      await anna!.do('PUT', path, { ignored_users: { [ben!.id]: {} } });
      const client = new SlidingClient(anna!);
      await client.sync(oneList());
      await ben!.say(roomId, 'nuisance');
      await ben!.createRoom({ invite: [anna!.id] });
      const answer = await client.sync(oneList());
      assert.deepEqual(bodies(answer.rooms[roomId]), []);
      assert.equal(answer.lists['all']?.count, 1);
    });
  });
}
