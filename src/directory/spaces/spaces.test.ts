import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob, carol, RoomsUnderTest, RoutesUnderTest } from '../../../test/support/rooms/rooms.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { mutualRoomRoutes } from '../users/mutual-rooms.ts';
import { SpaceHierarchy } from './hierarchy.ts';
import { RemoteRooms } from './remote-rooms.ts';
import { RoomSummaries } from './room-summaries.ts';
import { spaceRoutes } from './routes.ts';

type RoomRequest = Parameters<RoomsUnderTest['rooms']['creation']['create']>[1];
type Listed = { room_id: string; name?: string; children_state: { state_key: string }[] };

const publicRoom: RoomRequest = { preset: 'public_chat' };
const space: RoomRequest = { ...publicRoom, creation_content: { type: 'm.space' } };

forSelectedDatabases(import.meta.url, (open) => {
  describe('room summaries, spaces and mutual rooms', () => {
    let fixture: RoomsUnderTest;
    let http: RoutesUnderTest;
    before(async () => {
      fixture = await RoomsUnderTest.open(open);
      const { engine, rooms, clock } = fixture;
      const parts = {
        ...rooms,
        serverName: 'test',
        remote: new RemoteRooms(undefined, clock, fixture.caches),
      };
      const routes = [
        ...spaceRoutes(new RoomSummaries(parts), new SpaceHierarchy(parts)),
        ...mutualRoomRoutes(engine),
      ];
      http = await RoutesUnderTest.start(routes, clock);
    });
    after(() => http.stop());

    const make = (name: string, request: RoomRequest) =>
      fixture.rooms.creation.create(alice, { name, ...request });
    const setState = (roomId: string, type: string, stateKey: string, content: JsonObject) =>
      fixture.rooms.sending.state(
        { userId: alice, deviceId: undefined },
        roomId,
        { type, stateKey },
        content,
      );
    const contain = (parent: string, child: string, content: JsonObject = { via: ['test'] }) => {
      fixture.clock.advance(1);
      return setState(parent, 'm.space.child', child, content);
    };
    const get = (userId: string | undefined, path: string) =>
      http.call(userId, 'GET', path, undefined, '/v1');
    const tree = (userId: string, roomId: string, query = '') =>
      get(userId, `/rooms/${encodeURIComponent(roomId)}/hierarchy${query}`);
    const namesIn = (body: Record<string, unknown>) => (body['rooms'] as Listed[]).map(({ name }) => name);
    const summary = (userId: string | undefined, room: string) =>
      get(userId, `/room_summary/${encodeURIComponent(room)}`);
    const restricted = (allowed: string) => ({
      type: 'm.room.join_rules',
      content: { join_rule: 'restricted', allow: [{ type: 'm.room_membership', room_id: allowed }] },
    });

    it('GET /room_summary returns the description of a room', async () => {
      const roomId = await make('Rainbow', {
        ...publicRoom,
        room_alias_name: 'rainbow',
        topic: 'Sky',
        initial_state: [
          { type: 'm.room.encryption', content: { algorithm: 'm.megolm.v1.aes-sha2' } },
          { type: 'm.room.avatar', content: { url: 'https://not.a.media.id/' } },
        ],
      });
      const expected = {
        room_id: roomId,
        name: 'Rainbow',
        topic: 'Sky',
        canonical_alias: '#rainbow:test',
        encryption: 'm.megolm.v1.aes-sha2',
        room_version: '10',
        num_joined_members: 1,
        world_readable: false,
        guest_can_join: false,
        join_rule: 'public',
      };
      assert.deepEqual((await summary(undefined, '#rainbow:test')).body, expected);
      assert.deepEqual((await summary(bob, roomId)).body, { ...expected, membership: 'leave' });
      const path = `/im.nheko.summary/summary/${encodeURIComponent(roomId)}`;
      const unstable = await http.call(alice, 'GET', path, undefined, '/unstable');
      assert.equal(unstable.body['membership'], 'join');
      assert.equal(unstable.body['im.nheko.summary.room_version'], '10');
      const name = await setState(roomId, 'm.room.name', '', { name: 'Secret' });
      await fixture.redact(alice, roomId, name);
      assert.equal((await summary(bob, roomId)).body['name'], undefined, 'redacted');
    });

    it('GET /room_summary describes a room only to users who may see it by their membership, its join rules or its history visibility', async () => {
      const club = await make('Club', { preset: 'private_chat' });
      const visible: Record<string, boolean>[] = [];
      const cases: [string, RoomRequest][] = [
        ['private', { preset: 'private_chat' }],
        ['invited', { preset: 'private_chat', invite: [bob] }],
        ['public', publicRoom],
        ['knock', { initial_state: [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }] }],
        [
          'world',
          {
            initial_state: [
              { type: 'm.room.history_visibility', content: { history_visibility: 'world_readable' } },
            ],
          },
        ],
        ['club', { room_version: '10', initial_state: [restricted(club)] }],
      ];
      await fixture.rooms.memberships.invite(alice, club, carol);
      await fixture.join(carol, club);
      for (const [name, request] of cases) {
        const roomId = await make(name, request);
        const isVisibleTo = async (userId: string | undefined) =>
          (await summary(userId, roomId)).status === 200;
        visible.push({
          [name]: true,
          alice: await isVisibleTo(alice),
          bob: await isVisibleTo(bob),
          carol: await isVisibleTo(carol),
          unauthenticated: await isVisibleTo(undefined),
        });
      }
      const allUsers = { alice: true, bob: true, carol: true, unauthenticated: true };
      const aliceOnly = { alice: true, bob: false, carol: false, unauthenticated: false };
      assert.deepEqual(visible, [
        { private: true, ...aliceOnly },
        { invited: true, ...aliceOnly, bob: true },
        { public: true, ...allUsers },
        { knock: true, ...allUsers },
        { world: true, ...allUsers },
        { club: true, ...aliceOnly, carol: true },
      ]);
    });

    it('GET /room_summary responds 404 to unknown rooms and aliases and 400 to invalid ones, and GET /hierarchy 403 to an unknown room', async () => {
      for (const [room, status] of [
        ['!unknown:test', 404],
        ['#unknown:test', 404],
        ['unknown', 400],
      ] as const) {
        assert.equal((await summary(alice, room)).status, status, room);
      }
      const answer = await tree(alice, '!unknown:test');
      assert.deepEqual([answer.status, answer.body['errcode']], [403, 'M_FORBIDDEN']);
    });

    it('walks hierarchies in the order of children, and returns each room once', async () => {
      const root = await make('root', space);
      const inner = await make('inner', space);
      const [first, second, third] = [
        await make('first', publicRoom),
        await make('second', publicRoom),
        await make('third', publicRoom),
      ];
      const hidden = await make('hidden', { preset: 'private_chat' });
      const gone = await make('gone', publicRoom);
      await contain(root, third);
      await contain(root, hidden);
      await contain(root, inner, { via: ['test'], order: 'b', suggested: true });
      await contain(root, first, { via: ['test'], order: 'a' });
      await contain(root, gone, {});
      await contain(root, 'not a room');
      await contain(inner, second, { via: ['test'], suggested: true });
      await contain(inner, root);
      const treeForBob = await tree(bob, root);
      assert.deepEqual(namesIn(treeForBob.body), ['root', 'first', 'inner', 'second', 'third']);
      const [top, leaf] = treeForBob.body['rooms'] as Listed[];
      assert.deepEqual(
        top?.children_state.map((child) => child.state_key),
        [first, inner, third, hidden],
      );
      assert.deepEqual(leaf?.children_state, []);
      assert.equal(treeForBob.body['next_batch'], undefined);
      assert.deepEqual(namesIn((await tree(alice, root)).body), [
        'root',
        'first',
        'inner',
        'second',
        'third',
        'hidden',
      ]);
      assert.deepEqual(namesIn((await tree(bob, root, '?suggested_only=true')).body), [
        'root',
        'inner',
        'second',
      ]);
      assert.deepEqual(namesIn((await tree(bob, root, '?max_depth=1')).body), [
        'root',
        'first',
        'inner',
        'third',
      ]);
      assert.deepEqual(namesIn((await tree(bob, root, '?max_depth=0')).body), ['root']);
    });

    it('paginates hierarchies, and rejects changed parameters for the next page, unknown tokens and invalid limits', async () => {
      const root = await make('root', space);
      for (const name of ['a', 'b', 'c', 'd'])
        await contain(root, await make(name, publicRoom), { via: ['test'], order: name });
      const names: (string | undefined)[] = [];
      let from = '';
      for (let pages = 0; pages < 3; pages++) {
        const { body } = await tree(bob, root, `?limit=2${from}`);
        names.push(...namesIn(body));
        from = `&from=${body['next_batch']}`;
        assert.equal(body['next_batch'] === undefined, pages === 2);
      }
      assert.deepEqual(names, ['root', 'a', 'b', 'c', 'd']);
      const { body } = await tree(bob, root, '?limit=2');
      for (const query of [
        `?from=${body['next_batch']}&max_depth=1`,
        `?from=${body['next_batch']}&suggested_only=true`,
        '?from=nonsense',
        '?limit=0',
        '?max_depth=-1',
      ]) {
        const answer = await tree(bob, root, query);
        assert.deepEqual([answer.status, answer.body['errcode']], [400, 'M_INVALID_PARAM'], query);
      }
      const otherRoot = await make('other root', space);
      const answer = await tree(bob, otherRoot, `?from=${body['next_batch']}`);
      assert.deepEqual([answer.status, answer.body['errcode']], [400, 'M_INVALID_PARAM'], 'another room');
    });

    it('returns a room that a path within max_depth reaches, also when a longer path reaches it first', async () => {
      const [root, long, both] = [
        await make('root', space),
        await make('long', space),
        await make('both', space),
      ];
      const leaf = await make('leaf', publicRoom);
      await contain(root, long, { via: ['test'], order: 'a' });
      await contain(root, both, { via: ['test'], order: 'b' });
      await contain(long, both);
      await contain(both, leaf);
      await contain(both, root);
      assert.deepEqual(namesIn((await tree(bob, root, '?max_depth=2')).body), [
        'root',
        'long',
        'both',
        'leaf',
      ]);
      assert.deepEqual(namesIn((await tree(bob, root, '?max_depth=1')).body), ['root', 'long', 'both']);
    });

    it('returns a hierarchy to a depth of 50 at most, also when max_depth is greater', async () => {
      const chain: string[] = [];
      for (let depth = 0; depth < 60; depth++) chain.push(await make(`${depth}`, space));
      for (const [depth, roomId] of chain.entries()) {
        const next = chain[depth + 1];
        if (next) await contain(roomId, next);
      }
      const first = await tree(bob, chain[0]!, '?max_depth=1000000');
      assert.equal(namesIn(first.body).length, 50);
      const rest = await tree(bob, chain[0]!, `?max_depth=1000000&from=${first.body['next_batch']}`);
      assert.deepEqual(namesIn(rest.body), ['50']);
    });

    it('lists mutual rooms of two users, and rejects the id of the requester, an invalid user id and an invalid token with 400 M_INVALID_PARAM', async () => {
      const [one, two] = [await fixture.room('@x:test', '@y:test'), await fixture.room('@x:test', '@y:test')];
      await fixture.room('@x:test');
      const left = await fixture.room('@y:test', '@x:test');
      await fixture.leave('@x:test', left);
      const mutualRooms = (userId: string, other: string, more = '') =>
        get(userId, `/mutual_rooms?user_id=${encodeURIComponent(other)}${more}`);
      const expected = { joined: [one, two].sort(), count: 2 };
      assert.deepEqual((await mutualRooms('@x:test', '@y:test')).body, expected);
      assert.deepEqual((await mutualRooms('@y:test', '@x:test')).body, expected);
      assert.deepEqual((await mutualRooms('@x:test', '@unknown:test')).body, { joined: [], count: 0 });
      for (const [userId, more] of [
        ['@x:test', ''],
        ['nobody', ''],
        ['@y:test', '&from=nonsense'],
      ] as const) {
        const answer = await mutualRooms('@x:test', userId, more);
        assert.deepEqual([answer.status, answer.body['errcode']], [400, 'M_INVALID_PARAM'], userId);
      }
      assert.equal((await get('@x:test', '/mutual_rooms')).status, 400);
      const path = '/uk.half-shot.msc2666/user/mutual_rooms?user_id=@y:test';
      assert.deepEqual((await http.call('@x:test', 'GET', path, undefined, '/unstable')).body, expected);
    });

    it('paginates mutual rooms', async () => {
      const rooms: string[] = [];
      for (let count = 0; count < 103; count++) rooms.push(await fixture.room('@many:test', '@more:test'));
      const path = '/mutual_rooms?user_id=@more:test';
      const first = await get('@many:test', path);
      const rest = await get('@many:test', `${path}&from=${first.body['next_batch']}`);
      const joined = [...(first.body['joined'] as string[]), ...(rest.body['joined'] as string[])];
      assert.deepEqual(joined, rooms.sort());
      assert.deepEqual([first.body['count'], rest.body['next_batch']], [103, undefined]);
    });
  });
});
