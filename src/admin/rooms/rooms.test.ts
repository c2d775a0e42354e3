import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { type ClientEventJson, enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

interface Listed {
  readonly room_id: string;
  readonly name: string | null;
  readonly [field: string]: unknown;
}

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('rooms of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      server = await startTestServer({
        database: kind,
        config: { directory: { room_list_publication_rules: [{ action: 'allow' }] } },
      });
      admin = await Administration.open(server);
      anna = await TestClient.register(server, 'anna');
      ben = await TestClient.register(server, 'ben');
    });
    after(() => server.stop());

    const list = async (query: Record<string, string | number | boolean> = {}) =>
      (await admin.do('GET', '/v1/rooms', undefined, query)) as unknown as {
        rooms: Listed[];
        total_rooms: number;
        offset: number;
        next_batch?: number;
        prev_batch?: number;
      };
    const names = async (query: Parameters<typeof list>[0] = {}) =>
      (await list({ search_term: 'listed', ...query })).rooms.map(({ name }) => name);

    describe('GET /rooms', () => {
      let [lake, hill, vale] = ['', '', ''];
      before(async () => {
        lake = await anna.createRoom({ name: 'Lake listed', visibility: 'public', preset: 'public_chat' });
        hill = await anna.createRoom({ name: 'Hill listed 100%', room_alias_name: 'summit' });
        vale = await ben.createRoom({ name: 'Vale listed', creation_content: { type: 'm.space' } });
        await ben.join(lake);
        await ben.leave(vale);
      });

      it('lists rooms with all fields in the order of their names', async () => {
        const { rooms, total_rooms, offset } = await list({ search_term: 'listed' });
        assert.deepEqual([total_rooms, offset], [3, 0]);
        const { version, state_events, ...found } = rooms[1]!;
        assert.match(String(version), /^\d+$/);
        assert.ok(Number(state_events) > 5);
        assert.deepEqual(found, {
          room_id: lake,
          name: 'Lake listed',
          canonical_alias: null,
          joined_members: 2,
          joined_local_members: 2,
          creator: anna.id,
          encryption: null,
          federatable: true,
          public: true,
          join_rules: 'public',
          guest_access: 'forbidden',
          history_visibility: 'shared',
          room_type: null,
        });
        assert.deepEqual([rooms[0]!['canonical_alias'], rooms[2]!['room_type']], ['#summit:test', 'm.space']);
      });

      it('filters rooms by name, alias, id, publication and emptiness', async () => {
        assert.deepEqual(await names({ search_term: '100%' }), ['Hill listed 100%']);
        assert.deepEqual(await names({ search_term: 'SUMM' }), ['Hill listed 100%']);
        assert.deepEqual(await names({ search_term: vale.slice(1, 8) }), ['Vale listed']);
        assert.deepEqual(await names({ public_rooms: true }), ['Lake listed']);
        assert.deepEqual(await names({ public_rooms: false }), ['Hill listed 100%', 'Vale listed']);
        assert.deepEqual(await names({ empty_rooms: true }), ['Vale listed']);
        assert.deepEqual(await names({ empty_rooms: false }), ['Hill listed 100%', 'Lake listed']);
        assert.deepEqual(await admin.refused('GET', '/v1/rooms', undefined, { order_by: 'x' }), [
          400,
          'M_INVALID_PARAM',
        ]);
      });

      it('orders rooms by each field in both directions, and continues each page after the last room of the previous page', async () => {
        for (const order_by of [
          'name',
          'alphabetical',
          'size',
          'canonical_alias',
          'joined_members',
          'joined_local_members',
          'version',
          'creator',
          'encryption',
          'federatable',
          'public',
          'join_rules',
          'guest_access',
          'history_visibility',
          'state_events',
        ]) {
          for (const dir of ['f', 'b']) {
            const whole = await names({ order_by, dir });
            const paged: (string | null)[] = [];
            for (let from = 0; ; ) {
              const page = await list({ search_term: 'listed', order_by, dir, limit: 2, from });
              assert.equal(page.prev_batch, from === 0 ? undefined : from - 2);
              paged.push(...page.rooms.map(({ name }) => name));
              if (page.next_batch === undefined) break;
              from = page.next_batch;
            }
            assert.deepEqual(paged, whole, `${order_by} ${dir}`);
            if (dir === 'b') assert.deepEqual(whole.toReversed(), await names({ order_by }), order_by);
          }
        }
        assert.equal((await names({ order_by: 'joined_members' }))[0], 'Lake listed');
        assert.equal((await names({ order_by: 'joined_members', dir: 'b' }))[0], 'Vale listed');
        const first = await list({ search_term: 'listed', limit: 1 });
        const added = await anna.createRoom({ name: 'Beach listed' });
        const second = await list({ search_term: 'listed', limit: 1, from: first.next_batch! });
        assert.deepEqual([first.rooms[0]!.room_id, second.rooms[0]!.room_id], [hill, lake]);
        await admin.do('DELETE', `/v1/rooms/${enc(added)}`, {});
      });
    });

    it('GET /rooms/{roomId}, /members and /state show a room, its members and its state', async () => {
      const roomId = await anna.createRoom({ name: 'Shown', topic: 'all of it', preset: 'public_chat' });
      await ben.join(roomId);
      const details = await admin.do('GET', `/v1/rooms/${enc(roomId)}`);
      const { name, topic, avatar, joined_local_devices, forgotten, tombstoned, replacement_room } = details;
      assert.deepEqual(
        [name, topic, avatar, joined_local_devices, forgotten, tombstoned, replacement_room],
        ['Shown', 'all of it', null, 2, false, false, null],
      );
      assert.deepEqual(await admin.do('GET', `/v1/rooms/${enc(roomId)}/members`), {
        members: [anna.id, ben.id],
        total: 2,
      });
      const state = (await admin.do('GET', `/v1/rooms/${enc(roomId)}/state`))['state'] as ClientEventJson[];
      const own = (await anna.do('GET', `/rooms/${enc(roomId)}/state`)) as unknown as ClientEventJson[];
      assert.equal(state.length, own.length);
      const topics = await admin.do('GET', `/v1/rooms/${enc(roomId)}/state`, undefined, {
        type: 'm.room.topic',
      });
      assert.equal((topics['state'] as ClientEventJson[]).length, 1);
      const { replacement_room: newRoom } = await anna.do('POST', `/rooms/${enc(roomId)}/upgrade`, {
        new_version: '11',
      });
      const closed = await admin.do('GET', `/v1/rooms/${enc(roomId)}`);
      assert.deepEqual([closed['tombstoned'], closed['replacement_room']], [true, newRoom]);
      for (const path of ['', '/members', '/state', '/messages', '/forward_extremities']) {
        assert.deepEqual(
          await admin.refused('GET', `/v1/rooms/!nothing:test${path}`),
          [404, 'M_NOT_FOUND'],
          path,
        );
      }
    });

    it('GET /messages, /context and /timestamp_to_event show events of rooms that the administrator is not in', async () => {
      const roomId = await anna.createRoom({ preset: 'private_chat' });
      const ids: string[] = [];
      for (const body of ['one', 'two', 'three']) ids.push(await anna.say(roomId, body));
      const path = `/v1/rooms/${enc(roomId)}`;
      const page = await admin.do('GET', `${path}/messages`, undefined, { dir: 'b', limit: 2 });
      const idsOf = (events: unknown) => (events as ClientEventJson[]).map(({ event_id }) => event_id);
      assert.deepEqual(idsOf(page['chunk']), [ids[2], ids[1]]);
      const next = await admin.do('GET', `${path}/messages`, undefined, {
        dir: 'b',
        limit: 1,
        from: String(page['end']),
      });
      assert.deepEqual(idsOf(next['chunk']), [ids[0]]);
      const context = await admin.do('GET', `${path}/context/${enc(ids[1]!)}`, undefined, { limit: 2 });
      assert.deepEqual(
        [idsOf(context['events_before']), idsOf(context['events_after'])],
        [[ids[0]], [ids[2]]],
      );
      const closest = await admin.do('GET', `${path}/timestamp_to_event`, undefined, { ts: 1e15, dir: 'b' });
      assert.equal(closest['event_id'], ids[2]);
      assert.deepEqual(await admin.refused('GET', `${path}/context/$nothing`), [404, 'M_NOT_FOUND']);
      assert.equal(
        (await admin.admin.call('GET', `/rooms/${enc(roomId)}/messages`, undefined, { dir: 'b' })).status,
        403,
      );
    });

    it('PUT /rooms/{roomId}/block keeps local users out of a room, also after a restart', async () => {
      const roomId = await anna.createRoom();
      const path = `/v1/rooms/${enc(roomId)}/block`;
      assert.deepEqual(await admin.do('GET', path), { block: false });
      await admin.do('PUT', path, { block: true });
      assert.deepEqual(await admin.do('GET', path), { block: true, user_id: '@admin:test' });
      await server.restart();
      for (const [client, action, body] of [
        [ben, 'join', {}],
        [anna, 'invite', { user_id: ben.id }],
      ] as const) {
        const answer = await client.call('POST', `/rooms/${enc(roomId)}/${action}`, body);
        assert.deepEqual([answer.status, answer.body['errcode']], [403, 'M_FORBIDDEN']);
      }
      await anna.say(roomId, 'still here');
      await admin.do('PUT', path, { block: false });
      await ben.join(roomId);
      await admin.do('PUT', '/v1/rooms/!unknown:elsewhere/block', { block: true });
      assert.deepEqual(await admin.refused('PUT', '/v1/rooms/nonsense/block', { block: true }), [
        400,
        'M_INVALID_PARAM',
      ]);
    });

    it('DELETE /v1/rooms/{roomId} moves users and aliases to a new room, deletes the room and blocks it', async () => {
      const roomId = await anna.createRoom({ preset: 'public_chat', room_alias_name: 'bad' });
      await ben.join(roomId);
      await anna.say(roomId, 'illegal');
      const deleted = await admin.do('DELETE', `/v1/rooms/${enc(roomId)}`, {
        new_room_user_id: '@moderator:test',
        room_name: 'Closed',
        message: 'It was closed',
        block: true,
      });
      const { new_room_id, kicked_users, ...rest } = deleted;
      assert.deepEqual((kicked_users as string[]).toSorted(), [anna.id, ben.id]);
      assert.deepEqual(rest, { failed_to_kick_users: [], local_aliases: ['#bad:test'] });
      const found = await ben.do('GET', `/directory/room/${enc('#bad:test')}`);
      assert.equal(found['room_id'], new_room_id);
      const { rooms } = await ben.sync();
      const events = rooms?.join?.[String(new_room_id)]?.timeline.events ?? [];
      assert.equal(events.at(-1)?.content['body'], 'It was closed');
      const silenced = await ben.call('PUT', `/rooms/${enc(String(new_room_id))}/send/m.room.message/1`, {
        body: 'x',
      });
      assert.equal(silenced.status, 403);
      assert.deepEqual(await admin.refused('GET', `/v1/rooms/${enc(roomId)}`), [404, 'M_NOT_FOUND']);
      assert.equal((await admin.do('GET', `/v1/rooms/${enc(roomId)}/block`))['block'], true);
      for (const [version, order] of [
        ['v1', {}],
        ['v2', {}],
        ['v2', { block: true }],
      ] as const) {
        for (const unknown of ['!un:known', 'no-room-id']) {
          const refused = await admin.refused('DELETE', `/${version}/rooms/${unknown}`, order);
          assert.deepEqual(refused, [400, 'M_INVALID_PARAM'], `${version} ${unknown}`);
        }
      }
      assert.equal((await admin.do('GET', '/v1/rooms/!un:known/block'))['block'], false);
      const blocked = await admin.do('DELETE', '/v1/rooms/!never:seen', { block: true });
      assert.deepEqual([blocked['kicked_users'], blocked['new_room_id']], [[], null]);
      assert.equal((await admin.do('GET', '/v1/rooms/!never:seen/block'))['block'], true);
    });

    it('DELETE /v2/rooms/{roomId} deletes a room in a job that survives a restart and whose status can be read', async () => {
      const roomId = await anna.createRoom({ preset: 'public_chat' });
      await ben.join(roomId);
      assert.deepEqual(await admin.refused('DELETE', `/v2/rooms/${enc(roomId)}`), [400, 'M_NOT_JSON']);
      assert.deepEqual(
        await admin.refused('DELETE', `/v2/rooms/${enc(roomId)}`, { new_room_user_id: '@a:elsewhere' }),
        [400, 'M_INVALID_PARAM'],
      );
      const [{ delete_id }, [repeated]] = await Promise.all([
        admin.do('DELETE', `/v2/rooms/${enc(roomId)}`, {}),
        admin.refused('DELETE', `/v2/rooms/${enc(roomId)}`, { block: true }),
      ]);
      // A refused deletion does not block the room.
      assert.ok(repeated === 400 || repeated === 404);
      assert.equal((await admin.do('GET', `/v1/rooms/${enc(roomId)}/block`))['block'], false);
      await server.restart();
      const status = () => admin.do('GET', `/v2/rooms/delete_status/${delete_id}`);
      let found = await status();
      while (found['status'] === 'scheduled' || found['status'] === 'active') found = await status();
      const { shutdown_room, ...rest } = found;
      assert.deepEqual(rest, { delete_id, room_id: roomId, status: 'complete' });
      const shutdown = shutdown_room as { kicked_users: string[]; new_room_id: string | null };
      assert.deepEqual(shutdown.kicked_users.toSorted(), [anna.id, ben.id]);
      assert.equal(shutdown.new_room_id, null);
      assert.deepEqual(await admin.do('GET', `/v2/rooms/${enc(roomId)}/delete_status`), { results: [found] });
      const listed = (id: string) => admin.do('GET', '/v1/room_deletions', undefined, { room_id: id });
      assert.deepEqual(await listed(roomId), { results: [found] });
      assert.deepEqual(await listed('!none:test'), { results: [] });
      for (const query of [{}, { room_id: 'none' }])
        assert.equal((await admin.refused('GET', '/v1/room_deletions', undefined, query))[0], 400);
      assert.deepEqual(await admin.refused('GET', `/v1/rooms/${enc(roomId)}`), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.refused('GET', '/v2/rooms/delete_status/none'), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.refused('GET', '/v2/rooms/!none:test/delete_status'), [
        404,
        'M_NOT_FOUND',
      ]);
      assert.deepEqual(await admin.refused('GET', '/v2/rooms/none/delete_status'), [400, 'M_INVALID_PARAM']);
    });

    it('DELETE /v1/rooms/{roomId} with purge: false removes the local users and keeps the room', async () => {
      const roomId = await anna.createRoom({ preset: 'public_chat' });
      const deleted = await admin.do('DELETE', `/v1/rooms/${enc(roomId)}`, { purge: false });
      assert.deepEqual(deleted['kicked_users'], [anna.id]);
      const details = await admin.do('GET', `/v1/rooms/${enc(roomId)}`);
      assert.deepEqual([details['joined_members'], details['forgotten']], [0, true]);
    });

    it('GET /rooms/{roomId}/aliases answers administrators who are not in the room, and no other users', async () => {
      const roomId = await anna.createRoom({ room_alias_name: 'hidden' });
      const path = `/rooms/${enc(roomId)}/aliases`;
      assert.deepEqual(await admin.admin.do('GET', path), { aliases: ['#hidden:test'] });
      const stranger = await TestClient.register(server, 'stranger');
      assert.equal((await stranger.call('GET', path)).status, 403);
    });

    it('POST /make_room_admin gives a user the power level of the most powerful local user, and invites the user', async () => {
      const roomId = await anna.createRoom({ preset: 'private_chat', room_version: '11' });
      const path = `/v1/rooms/${enc(roomId)}/make_room_admin`;
      await admin.do('POST', path, {});
      await admin.admin.join(roomId);
      const levels = await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.power_levels/`);
      assert.deepEqual(levels['users'], { [anna.id]: 100, '@admin:test': 100 });
      await admin.do('POST', path, { user_id: ben.id });
      await ben.join(roomId);
      await ben.setState(roomId, 'm.room.name', { name: 'Mine' });
      await Promise.all([anna.leave(roomId), ben.leave(roomId), admin.admin.leave(roomId)]);
      assert.deepEqual(await admin.refused('POST', path, {}), [400, 'M_UNKNOWN']);
    });

    it('POST /make_room_admin in a room of version 12 gives a user the highest finite power level, lowers no level, and changes nothing when it is repeated', async () => {
      const roomId = await anna.createRoom({ preset: 'private_chat', room_version: '12' });
      const path = `/v1/rooms/${enc(roomId)}/make_room_admin`;
      const read = (type: string) => anna.do('GET', `/rooms/${enc(roomId)}/state/${type}/`);
      const levels = await read('m.room.power_levels');
      const users = { [ben.id]: 150, '@carla:elsewhere.example': 120 };
      await anna.setState(roomId, 'm.room.power_levels', { ...levels, users });
      await admin.do('POST', path, { user_id: ben.id });
      assert.deepEqual((await read('m.room.power_levels'))['users'], users);
      await admin.do('POST', path, {});
      await admin.do('POST', path, {});
      assert.deepEqual((await read('m.room.power_levels'))['users'], { ...users, '@admin:test': 150 });
      const { chunk } = await admin.do('GET', `/v1/rooms/${enc(roomId)}/messages`, undefined, { limit: 100 });
      const changes = (chunk as ClientEventJson[]).filter(({ type }) => type === 'm.room.power_levels');
      assert.equal(changes.length, 3);
    });

    it('POST /join joins a user to a room by its id or alias, and invites the user if the room is not public', async () => {
      const open = await anna.createRoom({ preset: 'public_chat', room_alias_name: 'open' });
      assert.deepEqual(await admin.do('POST', `/v1/join/${enc('#open:test')}`, { user_id: ben.id }), {
        room_id: open,
      });
      const closed = await admin.admin.createRoom({ preset: 'private_chat' });
      await admin.do('POST', `/v1/join/${enc(closed)}`, { user_id: ben.id });
      const joined = await admin.do('GET', `/v1/users/${ben.id}/joined_rooms`);
      assert.ok([open, closed].every((roomId) => (joined['joined_rooms'] as string[]).includes(roomId)));
      const others = await anna.createRoom({ preset: 'private_chat' });
      assert.deepEqual(await admin.refused('POST', `/v1/join/${enc(others)}`, { user_id: ben.id }), [
        403,
        'M_FORBIDDEN',
      ]);
      assert.deepEqual(await admin.refused('POST', `/v1/join/${enc(open)}`, { user_id: '@x:elsewhere' }), [
        400,
        'M_INVALID_PARAM',
      ]);
    });

    it('POST /join, /make_room_admin and DELETE /rooms/{roomId} refuse deactivated users, and /make_room_admin also local users without an account', async () => {
      const deactivated = await TestClient.register(server, 'gone');
      await admin.do('POST', `/v1/deactivate/${deactivated.id}`, {});
      const roomId = await anna.createRoom({ preset: 'public_chat' });
      const path = `/v1/rooms/${enc(roomId)}`;
      const missing = [404, 'M_NOT_FOUND'];
      const body = { user_id: deactivated.id };
      assert.deepEqual(await admin.refused('POST', `/v1/join/${enc(roomId)}`, body), missing);
      assert.deepEqual(await admin.refused('POST', `${path}/make_room_admin`, body), missing);
      const unknown = { user_id: '@nobody:test' };
      assert.deepEqual(await admin.refused('POST', `${path}/make_room_admin`, unknown), missing);
      for (const version of ['v1', 'v2']) {
        const refused = await admin.refused('DELETE', `/${version}/rooms/${enc(roomId)}`, {
          new_room_user_id: deactivated.id,
        });
        assert.deepEqual(refused, missing, version);
      }
      assert.deepEqual((await admin.do('GET', `${path}/members`))['members'], [anna.id]);
      const levels = await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.power_levels/`);
      assert.deepEqual(levels['users'], { [anna.id]: 100 });
      await admin.do('POST', `${path}/make_room_admin`, { user_id: '@carla:elsewhere.example' });
    });

    it('GET /hierarchy shows all local rooms of a space, also private ones, in pages', async () => {
      const children = [await anna.createRoom({ name: 'Private' }), await ben.createRoom({ name: 'Of ben' })];
      const space = await anna.createRoom({ creation_content: { type: 'm.space' } });
      for (const child of [...children, '!far:elsewhere.example']) {
        await anna.setState(space, 'm.space.child', { via: ['test'] }, child);
      }
      const path = `/v1/rooms/${enc(space)}/hierarchy`;
      const page = async (query: Record<string, string | number>) => {
        const { rooms, next_batch } = await admin.do('GET', path, undefined, query);
        const ids = (rooms as { room_id: string }[]).map((room) => room.room_id);
        return { ids, next_batch: next_batch as string };
      };
      const whole = await page({});
      assert.deepEqual([whole.ids[0], whole.ids.toSorted()], [space, [space, ...children].toSorted()]);
      const first = await page({ limit: 2 });
      const rest = await page({ limit: 2, from: first.next_batch });
      assert.deepEqual([...first.ids, ...rest.ids], whole.ids);
      assert.deepEqual((await page({ max_depth: 0 })).ids, [space]);
      const [status] = await admin.refused('GET', `/v1/rooms/${enc('!none:test')}/hierarchy`);
      assert.equal(status, 404);
      const other = await admin.admin.ask(
        'GET',
        `/_matrix/client/v1/rooms/${enc(space)}/hierarchy`,
        undefined,
      );
      assert.equal(other.status, 403, 'the client-server API still applies visibility');
    });

    it('GET and DELETE /forward_extremities list and merge the forward extremities of a room', async () => {
      const roomId = await anna.createRoom();
      const eventId = await anna.say(roomId, 'end');
      const path = `/v1/rooms/${enc(roomId)}/forward_extremities`;
      const { count, results } = await admin.do('GET', path);
      assert.equal(count, 1);
      assert.equal((results as { event_id: string }[])[0]!.event_id, eventId);
      assert.deepEqual(await admin.do('DELETE', path), { deleted: 0 });
    });
  });
});
