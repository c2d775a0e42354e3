import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { type ClientEventJson, enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('rooms of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      server = await startTestServer({ database: kind });
      admin = await Administration.open(server);
      anna = await TestClient.register(server, 'anna');
      ben = await TestClient.register(server, 'ben');
    });
    after(() => server.stop());

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
      const stateForAnna = (await anna.do(
        'GET',
        `/rooms/${enc(roomId)}/state`,
      )) as unknown as ClientEventJson[];
      assert.equal(state.length, stateForAnna.length);
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

    it('GET /rooms/{roomId}/aliases of the client-server API answers administrators who are not in the room, and responds 403 to other users who are not in it', async () => {
      const roomId = await anna.createRoom({ room_alias_name: 'hidden' });
      const path = `/rooms/${enc(roomId)}/aliases`;
      assert.deepEqual(await admin.admin.do('GET', path), { aliases: ['#hidden:test'] });
      const stranger = await TestClient.register(server, 'stranger');
      assert.equal((await stranger.call('GET', path)).status, 403);
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
      const other = await admin.admin.request(
        'GET',
        `/_matrix/client/v1/rooms/${enc(space)}/hierarchy`,
        undefined,
      );
      assert.equal(other.status, 403, 'the client-server API still applies visibility');
    });

    it('GET /hierarchy describes a space and its children with the fields of the client-server API', async () => {
      const creation = { name: 'Home', room_version: '11', creation_content: { type: 'm.space' } };
      const space = await anna.createRoom(creation);
      await anna.setState(space, 'm.space.child', { via: ['test'] }, '!far:elsewhere.example');
      const { rooms } = await admin.do('GET', `/v1/rooms/${enc(space)}/hierarchy`);
      const [{ children_state: children, ...root }] = rooms as [{ children_state: object[] }];
      assert.deepEqual(root, {
        room_id: space,
        name: 'Home',
        room_type: 'm.space',
        room_version: '11',
        num_joined_members: 1,
        world_readable: false,
        guest_can_join: true,
        join_rule: 'invite',
      });
      const childFields = Object.keys(children[0] ?? {}).sort();
      assert.deepEqual(childFields, ['content', 'origin_server_ts', 'sender', 'state_key', 'type']);
    });

    it('GET /forward_extremities lists the forward extremities of a room, and DELETE responds deleted: 0 for a room with one forward extremity', async () => {
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
