import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('deletion of rooms by the admin API', () => {
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
      for (const [version, body] of [
        ['v1', {}],
        ['v2', {}],
        ['v2', { block: true }],
      ] as const) {
        for (const unknown of ['!un:known', 'no-room-id']) {
          const refused = await admin.refused('DELETE', `/${version}/rooms/${unknown}`, body);
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
      const [{ delete_id }, [secondStatus]] = await Promise.all([
        admin.do('DELETE', `/v2/rooms/${enc(roomId)}`, {}),
        admin.refused('DELETE', `/v2/rooms/${enc(roomId)}`, { block: true }),
      ]);
      // A refused deletion does not block the room.
      assert.ok(secondStatus === 400 || secondStatus === 404);
      assert.equal((await admin.do('GET', `/v1/rooms/${enc(roomId)}/block`))['block'], false);
      await server.restart();
      const status = () => admin.do('GET', `/v2/rooms/delete_status/${delete_id}`);
      const found = await eventually('end of the deletion', async () => {
        const current = await status();
        return current['status'] !== 'scheduled' && current['status'] !== 'active' && current;
      });
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

    it('the progress of a deletion counts the local users of the room, and its events as well when the room is purged', async () => {
      for (const purge of [true, false]) {
        const roomId = await anna.createRoom({ preset: 'public_chat' });
        await ben.join(roomId);
        for (const body of ['one', 'two', 'three']) await anna.say(roomId, body);
        // The state events of the room, and the three messages.
        const { state } = await admin.do('GET', `/v1/rooms/${enc(roomId)}/state`);
        const events = (state as object[]).length + 3;
        const { delete_id: id } = await admin.do('DELETE', `/v2/rooms/${enc(roomId)}`, { purge });
        const query = { action_name: 'rooms/deletion', resource_id: String(id), status: 'complete' };
        const tasks = async () =>
          (await admin.do('GET', '/v1/scheduled_tasks', undefined, query))['scheduled_tasks'] as {
            progress: { done: number; total: number };
          }[];
        const task = await eventually('end of the deletion', async () => (await tasks())[0]);
        const { done, total } = task.progress;
        assert.equal(done, total);
        if (purge) assert.ok(total >= 2 + events, `${total} of ${2 + events}`);
        else assert.equal(total, 2);
      }
    });

    it('DELETE /v1/rooms/{roomId} with purge: false removes the local users and keeps the room', async () => {
      const roomId = await anna.createRoom({ preset: 'public_chat' });
      const deleted = await admin.do('DELETE', `/v1/rooms/${enc(roomId)}`, { purge: false });
      assert.deepEqual(deleted['kicked_users'], [anna.id]);
      const details = await admin.do('GET', `/v1/rooms/${enc(roomId)}`);
      assert.deepEqual([details['joined_members'], details['forgotten']], [0, true]);
    });
  });
});
