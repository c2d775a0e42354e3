import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`POST /createRoom, on ${database}`, () => {
    let server: TestServer;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      server = await startTestServer({ database });
      [anna, ben] = [await TestClient.register(server, 'anna'), await TestClient.register(server, 'ben')];
    });
    after(() => server.stop());

    const stateOf = async (roomId: string, type: string, key = '') => {
      const { status, body } = await anna.call('GET', `/rooms/${enc(roomId)}/state/${type}/${enc(key)}`);
      return status === 200 ? body : undefined;
    };

    const presets = [
      [{ preset: 'private_chat' }, 'invite', 'can_join'],
      [{ preset: 'trusted_private_chat' }, 'invite', 'can_join'],
      [{ preset: 'public_chat' }, 'public', undefined],
      [{ visibility: 'public' }, 'public', undefined],
      [{ visibility: 'private' }, 'invite', 'can_join'],
      [{}, 'invite', 'can_join'],
    ] as const;
    for (const [body, joinRule, guestAccess] of presets) {
      it(`sets the join rule, guest access and history visibility of a room that is created with ${JSON.stringify(body)}`, async () => {
        const roomId = await anna.createRoom(body);
        assert.deepEqual(await stateOf(roomId, 'm.room.join_rules'), { join_rule: joinRule });
        const expectedAccess = guestAccess && { guest_access: guestAccess };
        assert.deepEqual(await stateOf(roomId, 'm.room.guest_access'), expectedAccess);
        const visibility = await stateOf(roomId, 'm.room.history_visibility');
        assert.deepEqual(visibility, { history_visibility: 'shared' });
      });
    }

    it('applies every parameter of POST /createRoom except visibility and invite_3pid', async () => {
      const roomId = await anna.createRoom({
        preset: 'trusted_private_chat',
        room_alias_name: `all-${database}`,
        name: 'Name',
        topic: 'Topic',
        invite: [ben.id, ben.id],
        room_version: '9',
        creation_content: { 'm.federate': false, type: 'm.space', room_version: '1', creator: ben.id },
        initial_state: [
          { type: 'm.room.name', content: { name: 'replaced' } },
          { type: 'm.room.history_visibility', content: { history_visibility: 'joined' } },
          { type: 'x', state_key: 'y', content: { z: 1 } },
        ],
        is_direct: true,
        power_level_content_override: { invite: 10 },
      });
      const alias = `#all-${database}:test`;
      assert.equal((await stateOf(roomId, 'm.room.name'))?.['name'], 'Name');
      assert.equal((await stateOf(roomId, 'm.room.topic'))?.['topic'], 'Topic');
      assert.deepEqual(await stateOf(roomId, 'x', 'y'), { z: 1 });
      assert.deepEqual(await stateOf(roomId, 'm.room.canonical_alias'), { alias });
      assert.deepEqual(await stateOf(roomId, 'm.room.history_visibility'), { history_visibility: 'joined' });
      const creation = { 'm.federate': false, type: 'm.space', room_version: '9', creator: anna.id };
      assert.deepEqual(await stateOf(roomId, 'm.room.create'), creation);
      const levels = await stateOf(roomId, 'm.room.power_levels');
      assert.equal(levels?.['invite'], 10);
      assert.deepEqual(levels?.['users'], { [anna.id]: 100, [ben.id]: 100 });
      const invitation = await stateOf(roomId, 'm.room.member', ben.id);
      assert.deepEqual([invitation?.['membership'], invitation?.['is_direct']], ['invite', true]);
      assert.equal((await ben.do('GET', `/directory/room/${enc(alias)}`))['room_id'], roomId);
    });

    it('sends the first events in the order of the specification', async () => {
      const roomId = await anna.createRoom({
        room_alias_name: `order-${database}`,
        name: 'Name',
        topic: 'Topic',
        invite: [ben.id],
        initial_state: [{ type: 'm.room.encryption', content: { algorithm: 'm.megolm.v1.aes-sha2' } }],
      });
      const page = await anna.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, { dir: 'f', limit: 50 });
      const types = (page['chunk'] as { type: string }[]).map(({ type }) => type);
      assert.deepEqual(types, [
        'm.room.create',
        'm.room.member',
        'm.room.power_levels',
        'm.room.canonical_alias',
        'm.room.join_rules',
        'm.room.history_visibility',
        'm.room.guest_access',
        'm.room.encryption',
        'm.room.name',
        'm.room.topic',
        'm.room.member',
      ]);
    });

    it('lets initial_state replace the power levels', async () => {
      const levels = { users: { [anna.id]: 77 }, users_default: 3 };
      const initial_state = [{ type: 'm.room.power_levels', content: levels }];
      assert.deepEqual(
        await stateOf(await anna.createRoom({ initial_state }), 'm.room.power_levels'),
        levels,
      );
    });

    for (let version = 1; version <= 12; version++) {
      it(`creates rooms of version ${version}`, async () => {
        const roomId = await anna.createRoom({
          room_version: String(version),
          preset: 'trusted_private_chat',
          invite: [ben.id],
        });
        await ben.join(roomId);
        await ben.redact(roomId, await ben.say(roomId, 'hello'));
        const creation = await stateOf(roomId, 'm.room.create');
        assert.equal(creation?.['creator'], version < 11 ? anna.id : undefined);
        assert.deepEqual(creation?.['additional_creators'], version < 12 ? undefined : [ben.id]);
        const { users } = (await stateOf(roomId, 'm.room.power_levels')) as { users: object };
        assert.deepEqual(users, version < 12 ? { [anna.id]: 100, [ben.id]: 100 } : {});
        assert.equal(roomId.includes(':'), version < 12);
        await ben.setState(roomId, 'm.room.tombstone', { body: 'gone', replacement_room: '!x:test' });
      });
    }

    const invalidRequests: [what: string, body: unknown, status: number, errcode: string][] = [
      ['an unknown version', { room_version: '99' }, 400, 'M_UNSUPPORTED_ROOM_VERSION'],
      ['a version that is a number', { room_version: 10 }, 400, 'M_BAD_JSON'],
      ['an unknown preset', { preset: 'chat' }, 400, 'M_BAD_JSON'],
      ['an unknown visibility', { visibility: 'x' }, 400, 'M_BAD_JSON'],
      ['a name that is a number', { name: 5 }, 400, 'M_BAD_JSON'],
      ['a body that is a list', [], 400, 'M_BAD_JSON'],
      ['a body that is not JSON', '{', 400, 'M_NOT_JSON'],
      ['invites that are not a list', { invite: 'x' }, 400, 'M_BAD_JSON'],
      ['an invite of an invalid user id', { invite: ['nobody'] }, 400, 'M_INVALID_PARAM'],
      ['an invite of oneself', { invite: ['@anna:test'] }, 400, 'M_INVALID_PARAM'],
      ['an alias with a colon', { room_alias_name: 'a:b' }, 400, 'M_INVALID_PARAM'],
      ['an empty alias', { room_alias_name: '' }, 400, 'M_INVALID_PARAM'],
      ['state without a type', { initial_state: [{ content: {} }] }, 400, 'M_BAD_JSON'],
      ['state without content', { initial_state: [{ type: 'x' }] }, 400, 'M_BAD_JSON'],
      [
        'state with a numeric key',
        { initial_state: [{ type: 'x', state_key: 1, content: {} }] },
        400,
        'M_BAD_JSON',
      ],
      ['state with U+0000', { initial_state: [{ type: 'x\0', content: {} }] }, 400, 'M_BAD_JSON'],
      [
        'a state key with U+0000',
        { initial_state: [{ type: 'x', state_key: '\0', content: {} }] },
        400,
        'M_BAD_JSON',
      ],
      [
        'm.room.create in initial_state',
        { initial_state: [{ type: 'm.room.create', content: {} }] },
        400,
        'M_INVALID_ROOM_STATE',
      ],
      [
        'a join of another user in initial_state',
        {
          initial_state: [{ type: 'm.room.member', state_key: '@ben:test', content: { membership: 'join' } }],
        },
        400,
        'M_INVALID_ROOM_STATE',
      ],
      [
        'a text as the power levels of users',
        { power_level_content_override: { users: 'x' } },
        400,
        'M_INVALID_ROOM_STATE',
      ],
      [
        'power levels that give the creator no power',
        { power_level_content_override: { users: {} } },
        400,
        'M_INVALID_ROOM_STATE',
      ],
      [
        'invites that need a higher power level than the creator has',
        { power_level_content_override: { invite: 101 }, invite: ['@ben:test'] },
        400,
        'M_INVALID_ROOM_STATE',
      ],
      [
        'a power level for the creator in room version 12',
        { room_version: '12', power_level_content_override: { users: { '@anna:test': 100 } } },
        400,
        'M_INVALID_ROOM_STATE',
      ],
      [
        'additional_creators that are not a list',
        { room_version: '12', creation_content: { additional_creators: 'x' } },
        400,
        'M_INVALID_ROOM_STATE',
      ],
      ...[
        { alias: '#nowhere:test' },
        { alt_aliases: ['#nowhere:test'] },
        { alias: 'nowhere' },
        { alias: 5 },
      ].map((content): (typeof invalidRequests)[number] => [
        `a canonical alias that does not point to the room (${JSON.stringify(content)})`,
        { initial_state: [{ type: 'm.room.canonical_alias', content }] },
        400,
        'M_INVALID_ROOM_STATE',
      ]),
      [
        'a server ACL that denies this server',
        { initial_state: [{ type: 'm.room.server_acl', content: { allow: ['*'], deny: ['test'] } }] },
        400,
        'M_INVALID_ROOM_STATE',
      ],
      ['a topic of 70,000 characters', { topic: 'x'.repeat(70_000) }, 413, 'M_TOO_LARGE'],
    ];
    for (const [what, body, status, errcode] of invalidRequests) {
      it(`rejects ${what} with ${status} ${errcode}, and creates no room`, async () => {
        const before = await anna.do('GET', '/joined_rooms');
        const answer = await anna.call('POST', '/createRoom', body);
        assert.deepEqual([answer.status, answer.body['errcode']], [status, errcode], answer.raw);
        assert.deepEqual(await anna.do('GET', '/joined_rooms'), before);
        const { rooms } = await ben.sync();
        assert.ok(
          Object.keys(rooms?.invite ?? {}).every((roomId) =>
            (before['joined_rooms'] as string[]).includes(roomId),
          ),
        );
      });
    }

    it('accepts the alias of the new room in initial_state', async () => {
      const alias = `#own-${database}:test`;
      const content = { alias, alt_aliases: [alias], 'org.example': 1 };
      const roomId = await anna.createRoom({
        room_alias_name: `own-${database}`,
        initial_state: [{ type: 'm.room.canonical_alias', content }],
      });
      assert.deepEqual(await stateOf(roomId, 'm.room.canonical_alias'), content);
    });

    it('stores invites for user ids that register later', async () => {
      const localpart = `later-${database}`;
      const directRoomId = await anna.createRoom({ is_direct: true, invite: [`@${localpart}:test`] });
      const roomId = await anna.createRoom();
      await anna.do('POST', `/rooms/${enc(roomId)}/invite`, { user_id: `@${localpart}:test` });
      const lateUser = await TestClient.register(server, localpart);
      const { rooms } = await lateUser.sync();
      assert.deepEqual(Object.keys(rooms?.invite ?? {}).toSorted(), [directRoomId, roomId].toSorted());
      await lateUser.join(roomId);
    });

    it('refuses an alias that is taken', async () => {
      await anna.createRoom({ room_alias_name: `taken-${database}` });
      const answer = await anna.call('POST', '/createRoom', { room_alias_name: `taken-${database}` });
      assert.deepEqual([answer.status, answer.body['errcode']], [400, 'M_ROOM_IN_USE']);
    });
  });
}
