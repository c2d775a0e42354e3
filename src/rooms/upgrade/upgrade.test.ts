import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer, type TestUser } from '../../../test/support/servers/server.ts';
import { TestRoom } from '../../../test/support/users/test-room.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('POST /rooms/{roomId}/upgrade', () => {
    let server: TestServer;
    let alice: TestUser;
    let bob: TestUser;
    let carol: TestUser;
    before(async () => {
      const allowAll = { user_id: '*', alias: '*', room_id: '*', action: 'allow' as const };
      const config = { directory: { room_list_publication_rules: [allowAll] } };
      server = await startTestServer({ database: open.kind, config });
      [alice, bob, carol] = [
        await server.register('alice'),
        await server.register('bob'),
        await server.register('carol'),
      ];
    });
    after(() => server.stop());

    const upgrade = async (talk: TestRoom, user: TestUser, body: object) => {
      const { status, body: answer } = await talk.call(user, 'POST', '/upgrade', { body });
      if (status !== 200) return { status, errcode: answer['errcode'], talk };
      return {
        status,
        errcode: undefined,
        talk: TestRoom.existing(server, String(answer['replacement_room'])),
      };
    };
    const levels = async (talk: TestRoom) =>
      (await talk.state(alice, 'm.room.power_levels')) as {
        users: Record<string, number>;
        events: Record<string, number>;
        events_default: number;
        invite: number;
        ban: number;
        notifications?: object;
      };
    const tombstoneId = async (talk: TestRoom) => {
      const { body } = await talk.call(alice, 'GET', '/state');
      const events = body as unknown as { type: string; event_id: string }[];
      return events.find(({ type }) => type === 'm.room.tombstone')?.event_id;
    };
    const resolve = async (alias: string) => {
      const path = `/_matrix/client/v3/directory/room/${encodeURIComponent(alias)}`;
      return (await server.api('GET', path)).body['room_id'];
    };
    const published = async (talk: TestRoom) => {
      const path = `/_matrix/client/v3/directory/list/room/${encodeURIComponent(talk.roomId)}`;
      return (await server.api('GET', path)).body['visibility'];
    };

    it('copies the recommended state, restricts the old room and moves its aliases', async () => {
      const state = [
        ['m.room.server_acl', { allow: ['*'], deny: ['bad.example'] }],
        ['m.room.encryption', { algorithm: 'm.megolm.v1.aes-sha2' }],
        ['m.room.avatar', { url: 'mxc://test/avatar' }],
        ['m.room.guest_access', { guest_access: 'can_join' }],
        ['m.room.history_visibility', { history_visibility: 'invited' }],
        ['m.room.join_rules', { join_rule: 'knock' }],
        ['org.example.sensitive', { key: 'value' }],
      ] as const;
      const old = await TestRoom.create(server, alice, [bob, carol], {
        preset: 'public_chat',
        visibility: 'public',
        name: 'The room',
        topic: 'Talk',
        room_version: '9',
        room_alias_name: 'old',
        creation_content: { type: 'org.example.kind', 'm.federate': false },
        power_level_content_override: { users: { [alice.userId]: 100, [bob.userId]: 60 }, ban: 55 },
      });
      for (const [type, content] of state) await old.setState(alice, type, content);
      await old.call(alice, 'POST', '/ban', { body: { user_id: carol.userId, reason: 'spam' } });
      await old.say(alice, 'last');
      const { talk } = await upgrade(old, alice, { new_version: '11' });

      const create = await talk.state(alice, 'm.room.create');
      assert.deepEqual(create, {
        type: 'org.example.kind',
        'm.federate': false,
        room_version: '11',
        predecessor: { room_id: old.roomId, event_id: await tombstoneId(old) },
      });
      for (const [type, content] of state.slice(0, -1))
        assert.deepEqual(await talk.state(alice, type), content);
      assert.equal((await talk.state(alice, 'm.room.name'))['name'], 'The room');
      assert.equal((await talk.state(alice, 'm.room.topic'))['topic'], 'Talk');
      assert.equal((await talk.call(alice, 'GET', '/state/org.example.sensitive/')).status, 404);
      const ban = await talk.state(alice, 'm.room.member', carol.userId);
      assert.deepEqual([ban['membership'], ban['reason']], ['ban', 'spam']);
      const { users, ban: toBan } = await levels(talk);
      assert.deepEqual(users, { [alice.userId]: 100, [bob.userId]: 60 });
      assert.equal(toBan, 55);

      const tombstone = await old.state(alice, 'm.room.tombstone');
      assert.equal(tombstone['replacement_room'], talk.roomId);
      assert.equal((await levels(old)).events_default, 50);
      assert.equal((await levels(old)).invite, 50);
      assert.equal(await resolve('#old:test'), talk.roomId);
      assert.deepEqual(await talk.state(alice, 'm.room.canonical_alias'), { alias: '#old:test' });
      assert.deepEqual(await old.state(alice, 'm.room.canonical_alias'), {});
      assert.deepEqual([await published(old), await published(talk)], ['private', 'public']);
    });

    it('makes the creators privileged in room version 12, and gives them power level 100 in older room versions', async () => {
      const old = await TestRoom.create(server, alice, [bob], {
        preset: 'public_chat',
        room_version: '11',
        power_level_content_override: {
          users: { [alice.userId]: 100, [bob.userId]: 90, [carol.userId]: 50 },
        },
      });
      const request = { new_version: '12', additional_creators: [bob.userId, alice.userId] };
      const { talk } = await upgrade(old, alice, request);
      const create = await talk.state(alice, 'm.room.create');
      assert.deepEqual(create['additional_creators'], [bob.userId]);
      assert.deepEqual(create['predecessor'], { room_id: old.roomId });
      assert.match(talk.roomId, /^![^:]+$/);
      const current = await levels(talk);
      assert.deepEqual(current.users, { [carol.userId]: 50 });
      assert.equal(current.events['m.room.tombstone'], 150);

      const upgradedAgain = await upgrade(talk, alice, { new_version: '12' });
      assert.equal(
        (await upgradedAgain.talk.state(alice, 'm.room.create'))['additional_creators'],
        undefined,
      );
      assert.deepEqual(
        (await levels(upgradedAgain.talk)).users,
        { [carol.userId]: 50 },
        'former creators are assigned no power level either',
      );
      const downgraded = await upgrade(talk, alice, { new_version: '11', additional_creators: ['ignored'] });
      const { users } = await levels(downgraded.talk);
      assert.deepEqual([users[alice.userId], users[bob.userId]], [100, 100]);
    });

    it('allows an upgrade by every user who may send m.room.tombstone', async () => {
      const old = await TestRoom.create(server, alice, [bob], {
        preset: 'public_chat',
        power_level_content_override: {
          users: { [alice.userId]: 100, [bob.userId]: 50 },
          events: { 'm.room.tombstone': 50, 'm.room.name': 90, 'm.room.power_levels': 100 },
        },
        name: 'Named by Alice',
      });
      const { talk, status } = await upgrade(old, bob, { new_version: '10' });
      assert.equal(status, 200);
      assert.equal((await talk.state(bob, 'm.room.name'))['name'], 'Named by Alice');
      const { users } = (await talk.state(bob, 'm.room.power_levels')) as { users: Record<string, number> };
      assert.deepEqual(users, { [alice.userId]: 100, [bob.userId]: 50 });
      const rename = await talk.call(bob, 'PUT', '/state/m.room.name/', { body: { name: 'Mine' } });
      assert.equal(rename.status, 403);
      assert.equal((await levels(old)).events_default, 0);
    });

    it('converts power levels and join rules to the new room version', async () => {
      const old = await TestRoom.create(server, alice, [], {
        preset: 'private_chat',
        room_version: '8',
        initial_state: [{ type: 'm.room.join_rules', content: { join_rule: 'restricted', allow: [] } }],
        power_level_content_override: {
          users: { [alice.userId]: '100' },
          events: { 'm.room.name': ' 60 ' },
          notifications: { room: 20 },
          historical: 77,
          'org.example.level': '7',
        },
      });
      const { talk } = await upgrade(old, alice, { new_version: '10' });
      const current = await levels(talk);
      assert.deepEqual([current.users, current.events['m.room.name']], [{ [alice.userId]: 100 }, 60]);
      assert.deepEqual(current.notifications, { room: 20 });
      const { historical, 'org.example.level': unknownLevel } = current as unknown as Record<string, unknown>;
      assert.deepEqual([historical, unknownLevel], [77, '7']);
      const downgraded = await upgrade(talk, alice, { new_version: '7' });
      assert.deepEqual(await downgraded.talk.state(alice, 'm.room.join_rules'), { join_rule: 'invite' });
    });

    it('answers a concurrent repeated request with the same room', async () => {
      const old = await TestRoom.create(server, alice);
      const request = { new_version: '12' };
      const [first, second] = await Promise.all([upgrade(old, alice, request), upgrade(old, alice, request)]);
      assert.equal(first.talk.roomId, second.talk.roomId);
      const upgradedAgain = await upgrade(old, alice, request);
      assert.notEqual(
        upgradedAgain.talk.roomId,
        first.talk.roomId,
        'the same request counts as a new one later',
      );
    });

    it('refuses an upgrade by a user without the power level, to an unknown room version, or with an invalid creator', async () => {
      const old = await TestRoom.create(server, alice, [bob]);
      const outcome = async (user: TestUser, body: object) => {
        const { status, errcode } = await upgrade(old, user, body);
        return [status, errcode];
      };
      assert.deepEqual(await outcome(bob, { new_version: '10' }), [403, 'M_FORBIDDEN']);
      assert.deepEqual(await outcome(carol, { new_version: '10' }), [403, 'M_FORBIDDEN']);
      assert.deepEqual(await outcome(alice, { new_version: '99' }), [400, 'M_UNSUPPORTED_ROOM_VERSION']);
      const invalidCreator = { new_version: '12', additional_creators: ['nobody'] };
      assert.deepEqual(await outcome(alice, invalidCreator), [400, 'M_INVALID_PARAM']);
      assert.equal((await outcome(alice, {}))[0], 400);
      assert.equal((await old.call(alice, 'GET', '/state/m.room.tombstone/')).status, 404);
    });

    it('copies tags, push rules and m.direct of users who join the new room', async () => {
      const [old, unrelated] = [
        await TestRoom.create(server, alice, [bob]),
        await TestRoom.create(server, alice, [bob]),
      ];
      const client = `/_matrix/client/v3/user/${encodeURIComponent(bob.userId)}`;
      const { token } = bob;
      const tags = (talk: TestRoom) => `${client}/rooms/${encodeURIComponent(talk.roomId)}/tags`;
      const rules = '/_matrix/client/v3/pushrules/global';
      await server.api('PUT', `${tags(old)}/m.favourite`, { token, body: { order: 0.5 } });
      await server.api('PUT', `${rules}/room/${encodeURIComponent(old.roomId)}`, {
        token,
        body: { actions: [] },
      });
      const condition = { kind: 'event_match', key: 'room_id', pattern: old.roomId };
      const mute = { actions: [], conditions: [condition] };
      await server.api('PUT', `${rules}/override/${encodeURIComponent(old.roomId)}`, { token, body: mute });
      const direct = { [alice.userId]: [old.roomId, unrelated.roomId] };
      await server.api('PUT', `${client}/account_data/m.direct`, { token, body: direct });

      const { talk } = await upgrade(old, alice, { new_version: '11' });
      await talk.call(alice, 'POST', '/invite', { body: { user_id: bob.userId } });
      await talk.join(bob);
      const rule = async (kind: string) =>
        (await server.api('GET', `${rules}/${kind}/${encodeURIComponent(talk.roomId)}`, { token })).body;
      // Each setting is copied in its own transaction, so all of them are awaited.
      const areSettingsCopied = async () => {
        const { body } = await server.api('GET', `${client}/account_data/m.direct`, { token });
        const { body: tagged } = await server.api('GET', tags(talk), { token });
        return (
          (body[alice.userId] as string[]).includes(talk.roomId) &&
          Object.keys(tagged['tags'] as object).length > 0 &&
          (await rule('room'))['actions'] !== undefined &&
          (await rule('override'))['conditions'] !== undefined
        );
      };
      await eventually('the settings of bob for the old room', areSettingsCopied);
      const { body } = await server.api('GET', tags(talk), { token });
      assert.deepEqual(body, { tags: { 'm.favourite': { order: 0.5 } } });
      assert.deepEqual((await rule('room'))['actions'], []);
      assert.deepEqual((await rule('override'))['conditions'], [{ ...condition, pattern: talk.roomId }]);
    });

    it('copies m.space.child events of a space', async () => {
      const creation_content = { type: 'm.space' };
      const old = await TestRoom.create(server, alice, [], { creation_content });
      await old.setState(alice, 'm.space.child', { via: ['test'], suggested: true }, '!child:test');
      await old.setState(alice, 'm.space.child', {}, '!removed:test');
      const { talk } = await upgrade(old, alice, { new_version: '12' });
      const child = { via: ['test'], suggested: true };
      assert.deepEqual(await talk.state(alice, 'm.space.child', '!child:test'), child);
      const removed = `/state/m.space.child/${encodeURIComponent('!removed:test')}`;
      assert.equal((await talk.call(alice, 'GET', removed)).status, 404);
    });
  });
});
