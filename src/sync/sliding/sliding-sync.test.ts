import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { serverDatabases } from '../../../test/support/databases.ts';
import { Person } from '../../../test/support/person.ts';
import { startTestServer, type TestServer } from '../../../test/support/server.ts';
import { SlidingClient, type SlidingRoomJson } from '../../../test/support/sliding-client.ts';

const list = (options: object = {}) => ({
  lists: { all: { ranges: [[0, 19]], timeline_limit: 3, required_state: [], ...options } },
});

const bodies = (room: SlidingRoomJson | undefined) =>
  room?.timeline?.map(({ content }) => content['body']) ?? [];
const types = (room: SlidingRoomJson | undefined) =>
  (room?.required_state ?? []).map(({ type, state_key }) => `${type} ${state_key}`).sort();

for (const database of serverDatabases(import.meta.url)) {
  describe(`sliding sync on ${database}`, () => {
    let server: TestServer;
    let count = 0;
    before(async () => {
      server = await startTestServer({ database });
    });
    after(() => server.stop());

    /** Users whom no other test has. */
    const people = (...names: string[]) =>
      Promise.all(names.map((name) => Person.register(server, `${name}${count++}`)));

    describe('lists', () => {
      it('have the rooms of their windows, the latest first, and count them all', async () => {
        const [anna] = await people('anna');
        const rooms = [];
        for (let index = 0; index < 4; index++) rooms.push(await anna!.createRoom());
        await anna!.say(rooms[1]!, 'up');
        const client = new SlidingClient(anna!);
        const first = await client.sync(list({ ranges: [[0, 1]] }));
        assert.equal(first.lists['all']?.count, 4);
        assert.deepEqual(Object.keys(first.rooms), [rooms[1], rooms[3]]);
        const grown = await client.sync(
          list({
            ranges: [
              [0, 0],
              [2, 3],
            ],
          }),
        );
        assert.deepEqual(Object.keys(grown.rooms), [rooms[2], rooms[0]]);
        assert.deepEqual(grown.rooms[rooms[0]!]?.lists, ['all']);
        assert.deepEqual((await client.sync(list())).rooms, {});
      });

      it('without a window have all rooms', async () => {
        const [anna] = await people('anna');
        const roomId = await anna!.createRoom();
        const body = { lists: { all: { timeline_limit: 1, required_state: [] } } };
        assert.deepEqual(Object.keys((await new SlidingClient(anna!).sync(body)).rooms), [roomId]);
      });

      it('tell later what happened outside of their windows', async () => {
        const [anna] = await people('anna');
        const older = await anna!.createRoom();
        const newer = await anna!.createRoom();
        const client = new SlidingClient(anna!);
        await client.sync(list());
        await anna!.setState(older, 'm.room.topic', { topic: 'changed' });
        await anna!.say(newer, 'on top');
        const narrow = await client.sync(list({ ranges: [[0, 0]] }));
        assert.deepEqual(Object.keys(narrow.rooms), [newer]);
        await client.sync(list({ ranges: [[0, 0]] }));
        await server.restart();
        const wide = await client.sync(list());
        assert.equal(wide.rooms[newer]?.timeline, undefined);
        assert.equal(wide.rooms[older]?.initial, undefined);
        assert.deepEqual(
          wide.rooms[older]?.timeline?.map(({ type }) => type),
          ['m.room.topic'],
        );
      });

      it('leave out rooms that were left before', async () => {
        const [anna] = await people('anna');
        const roomId = await anna!.createRoom();
        await anna!.leave(roomId);
        const client = new SlidingClient(anna!);
        assert.equal((await client.sync(list())).lists['all']?.count, 0);
      });
    });

    it('never mentions the rooms that the operator excludes, and bounds timelines', async () => {
      const excluded: string[] = [];
      const config = { sync: { exclude_rooms_from_sync: excluded, filter_timeline_limit: 2 } };
      const other = await startTestServer({ database, config });
      try {
        const anna = await Person.register(other, 'anna');
        const [shown, hidden] = [await anna.createRoom(), await anna.createRoom()];
        excluded.push(hidden);
        await other.restart();
        const subscription = { timeline_limit: 50, required_state: [] };
        const body = { ...list(), room_subscriptions: { [shown]: subscription, [hidden]: subscription } };
        const { rooms, lists } = await new SlidingClient(anna).sync(body);
        assert.deepEqual(Object.keys(rooms), [shown]);
        assert.equal(rooms[shown]?.timeline?.length, 2);
        assert.equal(lists['all']?.count, 1);
      } finally {
        await other.stop();
      }
    });

    describe('filters', () => {
      let anna: Person;
      let ben: Person;
      const rooms: Record<string, string> = {};
      before(async () => {
        [anna, ben] = (await people('anna', 'ben')) as [Person, Person];
        rooms['plain'] = await anna.createRoom({ name: 'The Plain Room' });
        rooms['secret'] = await anna.createRoom({
          initial_state: [{ type: 'm.room.encryption', content: { algorithm: 'm.megolm.v1.aes-sha2' } }],
        });
        rooms['space'] = await anna.createRoom({ creation_content: { type: 'm.space' } });
        rooms['direct'] = await anna.createRoom();
        rooms['invite'] = await ben.createRoom({ invite: [anna.id] });
        await anna.setState(rooms['space'], 'm.space.child', { via: ['test'] }, rooms['plain']);
        await anna.setState(rooms['space'], 'm.space.child', {}, rooms['secret']);
        const user = `/user/${encodeURIComponent(anna.id)}`;
        await anna.do('PUT', `${user}/account_data/m.direct`, { [ben.id]: [rooms['direct']] });
        const tag = `${user}/rooms/${encodeURIComponent(rooms['secret'])}/tags/m.favourite`;
        await anna.do('PUT', tag, { order: 0.5 });
      });

      const all = ['plain', 'secret', 'space', 'direct', 'invite'];
      const cases: [filters: () => object, expected: string[]][] = [
        [() => ({}), all],
        [() => ({ is_dm: true }), ['direct']],
        [() => ({ is_dm: false }), all.filter((name) => name !== 'direct')],
        [() => ({ is_encrypted: true }), ['secret']],
        [() => ({ is_encrypted: false }), all.filter((name) => name !== 'secret')],
        [() => ({ is_invite: true }), ['invite']],
        [() => ({ is_invite: false }), all.filter((name) => name !== 'invite')],
        [() => ({ room_types: ['m.space'] }), ['space']],
        [() => ({ room_types: ['m.space', null], not_room_types: [null] }), ['space']],
        [
          () => ({ not_room_types: ['m.space'], is_invite: false, is_dm: null }),
          ['plain', 'secret', 'direct'],
        ],
        [() => ({ room_name_like: 'pLAin' }), ['plain']],
        [() => ({ tags: ['m.favourite', 'other'] }), ['secret']],
        [() => ({ tags: ['m.favourite'], not_tags: ['m.favourite'] }), []],
        [() => ({ not_tags: ['m.favourite'] }), all.filter((name) => name !== 'secret')],
        [() => ({ spaces: [rooms['space']] }), ['plain']],
        [() => ({ spaces: ['!unknown:test'] }), []],
      ];
      for (const [filters, expected] of cases) {
        it(`${JSON.stringify(filters())} lets through ${expected.join(', ') || 'nothing'}`, async () => {
          const client = new SlidingClient(anna, JSON.stringify(filters()).slice(0, 100));
          const answer = await client.sync(list({ filters: filters() }));
          const names = all.filter((name) => answer.rooms[rooms[name]!]);
          assert.deepEqual(names, expected);
          assert.equal(answer.lists['all']?.count, expected.length);
        });
      }
    });

    describe('rooms', () => {
      it('are told whole once, and then what is new', async () => {
        const [anna, ben] = await people('anna', 'ben');
        const roomId = await anna!.createRoom({ preset: 'public_chat', name: 'Hall' });
        await ben!.join(roomId);
        await ben!.say(roomId, 'one');
        const client = new SlidingClient(anna!);
        const body = list({ required_state: [['m.room.create', '']] });
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

      it('are called after their heroes when they have no name, and tell when they lose it', async () => {
        const [anna, ben] = await people('anna', 'ben');
        const roomId = await anna!.createRoom({ preset: 'public_chat', name: 'Hall' });
        await ben!.join(roomId);
        const client = new SlidingClient(anna!);
        const { heroes, name } = (await client.sync(list())).rooms[roomId]!;
        assert.deepEqual([name, heroes], ['Hall', undefined]);
        await anna!.setState(roomId, 'm.room.avatar', { url: 'mxc://test/picture' });
        assert.equal((await client.sync(list())).rooms[roomId]?.avatar, 'mxc://test/picture');
        await anna!.setState(roomId, 'm.room.name', {});
        const nameless = (await client.sync(list())).rooms[roomId]!;
        assert.equal(nameless.name, null);
        assert.equal(nameless.avatar, undefined);
        assert.deepEqual(
          nameless.heroes?.map(({ user_id }) => user_id),
          [ben!.id],
        );
        await anna!.setState(roomId, 'm.room.avatar', {});
        assert.equal((await client.sync(list())).rooms[roomId]?.avatar, null);
      });

      it('rise with what people say, and not with other events', async () => {
        const [anna] = await people('anna');
        const roomId = await anna!.createRoom();
        await anna!.say(roomId, 'hello');
        const client = new SlidingClient(anna!);
        const stamp = (await client.sync(list())).rooms[roomId]?.bump_stamp;
        await anna!.setState(roomId, 'm.room.topic', { topic: 'quiet' });
        assert.equal((await client.sync(list())).rooms[roomId]?.bump_stamp, stamp);
        await server.restart();
        await anna!.setState(roomId, 'm.room.topic', { topic: 'quieter' });
        assert.equal((await client.sync(list())).rooms[roomId]?.bump_stamp, stamp);
      });

      it('that are subscribed to come whether they are in a window or not', async () => {
        const [anna, ben] = await people('anna', 'ben');
        const roomId = await anna!.createRoom();
        const foreign = await ben!.createRoom();
        const subscription = { timeline_limit: 1, required_state: [['m.room.member', '$ME']] };
        const body = { room_subscriptions: { [roomId]: subscription, [foreign]: subscription } };
        const answer = await new SlidingClient(anna!).sync(body);
        assert.deepEqual(Object.keys(answer.rooms), [roomId]);
        assert.deepEqual(types(answer.rooms[roomId]), [`m.room.member ${anna!.id}`]);
        assert.equal(answer.rooms[roomId]?.lists, undefined);
      });

      it('are told in more depth as soon as that is wanted', async () => {
        const [anna] = await people('anna');
        const roomId = await anna!.createRoom({ topic: 'the topic' });
        for (const text of ['1', '2', '3', '4']) await anna!.say(roomId, text);
        const client = new SlidingClient(anna!);
        await client.sync(list({ timeline_limit: 1 }));
        const deep = { timeline_limit: 3, required_state: [['m.room.topic', '']] };
        const body = { ...list({ timeline_limit: 1 }), room_subscriptions: { [roomId]: deep } };
        const room = (await client.sync(body)).rooms[roomId];
        assert.deepEqual(bodies(room), ['2', '3', '4']);
        assert.equal(room?.unstable_expanded_timeline, true);
        assert.equal(room?.initial, undefined);
        assert.equal(room?.num_live, 0);
        assert.deepEqual(types(room), ['m.room.topic ']);
        assert.deepEqual((await client.sync(list({ timeline_limit: 1 }))).rooms, {});
        await anna!.say(roomId, '5');
        assert.deepEqual(bodies((await client.sync(list({ timeline_limit: 3 }))).rooms[roomId]), ['5']);
      });

      it('can be paged from the position of an answer', async () => {
        const [anna] = await people('anna');
        const roomId = await anna!.createRoom();
        const root = await anna!.say(roomId, 'root');
        const reply = { 'm.relates_to': { rel_type: 'm.thread', event_id: root } };
        const say = (body: string) =>
          anna!.send(roomId, 'm.room.message', { msgtype: 'm.text', body, ...reply });
        await say('before');
        const from = (await new SlidingClient(anna!).sync(list({ timeline_limit: 1 }))).pos;
        await say('after');
        const page = async (path: string, dir: string) => {
          const { body } = await anna!.ask('GET', path, undefined, { dir, from, limit: 1 });
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

      it('tell of members as their timelines need them', async () => {
        const [anna, ben, cleo] = await people('anna', 'ben', 'cleo');
        const roomId = await anna!.createRoom({ preset: 'public_chat' });
        for (const person of [ben!, cleo!]) await person.join(roomId);
        await ben!.say(roomId, 'hello');
        const body = list({
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

      it('tell nothing that ignored users say', async () => {
        const [anna, ben] = await people('anna', 'ben');
        const roomId = await anna!.createRoom({ preset: 'public_chat' });
        await ben!.join(roomId);
        const path = `/user/${encodeURIComponent(anna!.id)}/account_data/m.ignored_user_list`;
        await anna!.do('PUT', path, { ignored_users: { [ben!.id]: {} } });
        const client = new SlidingClient(anna!);
        await client.sync(list());
        await ben!.say(roomId, 'nuisance');
        await ben!.createRoom({ invite: [anna!.id] });
        const answer = await client.sync(list());
        assert.deepEqual(bodies(answer.rooms[roomId]), []);
        assert.equal(answer.lists['all']?.count, 1);
      });
    });

    describe('memberships', () => {
      it('invites show stripped state, and the room when it is joined', async () => {
        const [anna, ben] = await people('anna', 'ben');
        const client = new SlidingClient(ben!);
        await client.sync(list());
        const roomId = await anna!.createRoom({ name: 'Hall', invite: [ben!.id] });
        const invite = (await client.sync(list())).rooms[roomId]!;
        assert.equal(invite.membership, 'invite');
        assert.equal(invite.timeline, undefined);
        assert.ok(invite.invite_state?.some(({ type }) => type === 'm.room.name'));
        assert.deepEqual((await client.sync(list())).rooms, {});
        await anna!.say(roomId, 'not for guests');
        assert.deepEqual((await client.sync(list())).rooms, {});
        await ben!.join(roomId);
        const joined = (await client.sync(list())).rooms[roomId]!;
        assert.deepEqual([joined.initial, joined.membership], [true, 'join']);
      });

      it('knocks are shown like invites', async () => {
        const [anna, ben] = await people('anna', 'ben');
        const roomId = await anna!.createRoom({
          initial_state: [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }],
        });
        await ben!.knock(roomId);
        const client = new SlidingClient(ben!);
        const knock = (await client.sync(list())).rooms[roomId]!;
        assert.equal(knock.membership, 'knock');
        assert.ok(knock.invite_state?.some(({ type }) => type === 'm.room.create'));
      });

      it('a room that was left is told of once, to those who knew it', async () => {
        const [anna, ben] = await people('anna', 'ben');
        const roomId = await anna!.createRoom({ preset: 'public_chat' });
        await ben!.join(roomId);
        const client = new SlidingClient(ben!);
        const body = list({
          required_state: [
            ['m.room.member', '$ME'],
            ['m.room.topic', ''],
          ],
        });
        await client.sync(body);
        await ben!.leave(roomId);
        await anna!.setState(roomId, 'm.room.topic', { topic: 'among us' });
        await anna!.say(roomId, 'among us');
        const left = (await client.sync(body)).rooms[roomId]!;
        assert.equal(left.membership, 'leave');
        assert.deepEqual(types(left), [`m.room.member ${ben!.id}`]);
        assert.deepEqual(
          left.timeline?.map(({ content }) => content['membership']),
          ['leave'],
        );
        const after = await client.sync(body);
        assert.deepEqual([after.rooms, after.lists['all']?.count], [{}, 0]);
        assert.equal((await new SlidingClient(ben!, 'other').sync(body)).lists['all']?.count, 0);
      });

      it('who was removed by others is told so even on a new connection', async () => {
        const [anna, ben, cleo] = await people('anna', 'ben', 'cleo');
        const roomId = await anna!.createRoom({ preset: 'public_chat', name: 'Hall' });
        await ben!.join(roomId);
        await anna!.membership('kick', roomId, ben!);
        await anna!.membership('ban', roomId, cleo!);
        await anna!.setState(roomId, 'm.room.name', { name: 'Without them' });
        const client = new SlidingClient(ben!);
        const { membership, name, initial } = (await client.sync(list())).rooms[roomId]!;
        assert.deepEqual({ membership, name, initial }, { membership: 'leave', name: 'Hall', initial: true });
        assert.deepEqual((await client.sync(list())).rooms, {});
        assert.deepEqual((await new SlidingClient(cleo!).sync(list())).rooms, {});
      });
    });
  });
}
