import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from './clients/eventually.ts';
import { forSelectedDatabases } from './support/databases/databases.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';
import { SlidingClient } from './support/users/sliding-client.ts';
import { enc, TestClient } from './support/users/test-client.ts';

/** Rooms whose ids contain no server name, and whose creators have infinite power, in the client-server API. */
forSelectedDatabases(import.meta.url, (open) => {
  describe('rooms of version 12', () => {
    let server: TestServer;
    let anna: TestClient;
    let ben: TestClient;
    let cleo: TestClient;
    let room: string;
    let messageId: string;
    let reply: string;
    before(async () => {
      server = await startTestServer({
        database: open.kind,
        config: {
          rooms: { default_room_version: '12', max_event_delay_duration: 60_000 },
          directory: {
            room_list_publication_rules: [{ user_id: '*', alias: '*', room_id: '*', action: 'allow' }],
          },
        },
      });
      anna = await TestClient.register(server, 'anna');
      ben = await TestClient.register(server, 'ben');
      cleo = await TestClient.register(server, 'cleo');
      room = await anna.createRoom({ preset: 'public_chat', name: 'Twelve', visibility: 'public' });
      await ben.do('POST', `/join/${enc(room)}`, {});
      messageId = await ben.say(room, 'findable words');
      const thread = { 'm.relates_to': { rel_type: 'm.thread', event_id: messageId } };
      reply = await anna.send(room, 'm.room.message', { msgtype: 'm.text', body: 'in it', ...thread });
    });
    after(() => server.stop());

    it('creates rooms of version 12 whose ids contain no server name', () => {
      assert.match(room, /^![A-Za-z0-9_-]{43}$/);
    });

    it('accepts ids of rooms of version 12 on endpoints that take a room id', async () => {
      const id = enc(room);
      const ownRoomPath = `/user/${enc(ben.id)}/rooms/${id}`;
      const alias = enc('#twelve:test');
      const requests: [method: string, path: string, body?: object][] = [
        ['GET', `/_matrix/client/v3/rooms/${id}/state`],
        ['GET', `/_matrix/client/v3/rooms/${id}/state/m.room.name`],
        ['GET', `/_matrix/client/v3/rooms/${id}/members`],
        ['GET', `/_matrix/client/v3/rooms/${id}/joined_members`],
        ['GET', `/_matrix/client/v3/rooms/${id}/messages?dir=b`],
        ['GET', `/_matrix/client/v3/rooms/${id}/event/${enc(messageId)}`],
        ['GET', `/_matrix/client/v3/rooms/${id}/context/${enc(messageId)}`],
        ['GET', `/_matrix/client/v3/rooms/${id}/initialSync`],
        ['GET', `/_matrix/client/v3/rooms/${id}/aliases`],
        ['GET', `/_matrix/client/v1/rooms/${id}/relations/${enc(messageId)}/m.thread`],
        ['GET', `/_matrix/client/v1/rooms/${id}/threads`],
        ['GET', `/_matrix/client/v1/rooms/${id}/timestamp_to_event?ts=0&dir=f`],
        ['GET', `/_matrix/client/v1/rooms/${id}/hierarchy`],
        ['GET', `/_matrix/client/v1/room_summary/${id}`],
        ['GET', `/_matrix/client/unstable/im.nheko.summary/rooms/${id}/summary`],
        ['PUT', `/_matrix/client/v3/directory/room/${alias}`, { room_id: room }],
        ['GET', `/_matrix/client/v3/directory/room/${alias}`],
        ['PUT', `/_matrix/client/v3/directory/list/room/${id}`, { visibility: 'public' }],
        ['GET', `/_matrix/client/v3/directory/list/room/${id}`],
        ['PUT', `/_matrix/client/v3${ownRoomPath}/tags/m.favourite`, { order: 0.5 }],
        ['GET', `/_matrix/client/v3${ownRoomPath}/tags`],
        ['PUT', `/_matrix/client/v3${ownRoomPath}/account_data/m.marked_unread`, { unread: true }],
        ['GET', `/_matrix/client/v3${ownRoomPath}/account_data/m.marked_unread`],
        ['POST', `/_matrix/client/v3/rooms/${id}/receipt/m.read/${enc(reply)}`, { thread_id: messageId }],
        ['POST', `/_matrix/client/v3/rooms/${id}/read_markers`, { 'm.fully_read': messageId }],
        ['PUT', `/_matrix/client/v3/rooms/${id}/typing/${enc(ben.id)}`, { typing: true, timeout: 1_000 }],
        ['POST', `/_matrix/client/v3/rooms/${id}/report`, { reason: 'x' }],
        ['POST', `/_matrix/client/v3/rooms/${id}/report/${enc(reply)}`, { reason: 'x' }],
        ['PUT', `/_matrix/client/v3/pushrules/global/room/${id}`, { actions: [] }],
        ['GET', `/_matrix/client/v3/pushrules/global/room/${id}`],
        [
          'PUT',
          `/_matrix/client/unstable/io.element.msc4306/rooms/${id}/thread/${enc(messageId)}/subscription`,
          {},
        ],
        ['GET', `/_matrix/client/v1/mutual_rooms?user_id=${enc(anna.id)}`],
        ['POST', `/_matrix/client/v3/rooms/${id}/invite`, { user_id: cleo.id }],
        [
          'PUT',
          `/_matrix/client/v3/rooms/${id}/delayed_event/m.room.message/later`,
          { delay_ms: 50_000, content: { msgtype: 'm.text', body: 'later' } },
        ],
        ['PUT', `/_matrix/client/v3/rooms/${id}/redact/${enc(messageId)}/gone`, {}],
        ['POST', `/_matrix/client/v3/rooms/${id}/leave`, {}],
        ['POST', `/_matrix/client/v3/rooms/${id}/forget`, {}],
        ['POST', `/_matrix/client/v3/join/${alias}`, {}],
      ];
      const searchResponse = await ben.do('POST', '/search', {
        search_categories: { room_events: { search_term: 'findable', filter: { rooms: [room] } } },
      });
      assert.match(JSON.stringify(searchResponse), /"count":1/);
      for (const [method, pathAndQuery, body] of requests) {
        const [path = '', query = ''] = pathAndQuery.split('?');
        // The creator sends requests that need power.
        const client = /directory\/list|\/invite$/.test(path) ? anna : ben;
        const answer = await client.request(
          method,
          path,
          body,
          Object.fromEntries(new URLSearchParams(query)),
        );
        assert.equal(answer.status, 200, `${method} ${pathAndQuery}: ${answer.raw}`);
      }
    });

    it('returns rooms of version 12 by classic sync and its filters, sliding sync, the room directory and invites', async () => {
      const { rooms } = await ben.sync(undefined, { filter: { room: { rooms: [room] } } });
      assert.deepEqual(Object.keys(rooms?.join ?? {}), [room]);
      const syncWithoutRoom = await ben.sync(undefined, { filter: { room: { not_rooms: [room] } } });
      assert.equal(syncWithoutRoom.rooms?.join?.[room], undefined);
      const config = { timeline_limit: 1, required_state: [['m.room.create', '']] };
      const slidingResponse = await new SlidingClient(ben).sync({ room_subscriptions: { [room]: config } });
      assert.equal(slidingResponse.rooms[room]?.name, 'Twelve');
      const listed = async () => {
        const filter = { generic_search_term: 'Twelve' };
        const { chunk } = await cleo.do('POST', '/publicRooms', { filter });
        return (chunk as { room_id: string }[]).map(({ room_id: id }) => id);
      };
      // The directory is updated asynchronously.
      await eventually('the room in the directory', async () => (await listed()).length > 0);
      assert.deepEqual(await listed(), [room]);
      assert.ok((await cleo.sync()).rooms?.invite?.[room]);
    });

    it('makes users who are invited at the creation of a trusted_private_chat of version 12 additional creators', async () => {
      const sharedRoom = await anna.createRoom({ preset: 'trusted_private_chat', invite: [ben.id] });
      const path = (type: string) => `/rooms/${enc(sharedRoom)}/state/${type}`;
      const create = await anna.do('GET', path('m.room.create'));
      assert.deepEqual(create['additional_creators'], [ben.id]);
      const levels = (await anna.do('GET', path('m.room.power_levels'))) as { users?: object };
      assert.deepEqual(levels.users ?? {}, {});
      await ben.join(sharedRoom);
      await ben.setState(sharedRoom, 'm.room.power_levels', { ...levels, users: { [cleo.id]: 100 } });
      await ben.membership('invite', sharedRoom, cleo);
      await cleo.join(sharedRoom);
      const kick = await cleo.call('POST', `/rooms/${enc(sharedRoom)}/kick`, { user_id: anna.id });
      assert.equal(kick.status, 403, 'a creator cannot be kicked');
      const withCreator = { users: { [anna.id]: 100 } };
      const response = await ben.call('PUT', path('m.room.power_levels'), withCreator);
      assert.equal(response.status, 400, 'power levels must not name creators');
    });

    it('keeps the power levels of all users but the creator of the new room in an upgrade from version 11 to 12', async () => {
      const users = { [anna.id]: 100, [ben.id]: 100, [cleo.id]: 50 };
      const oldRoom = await anna.createRoom({
        preset: 'public_chat',
        room_version: '11',
        power_level_content_override: { users },
      });
      await ben.join(oldRoom);
      const upgraded = await ben.do('POST', `/rooms/${enc(oldRoom)}/upgrade`, { new_version: '12' });
      const replacement = String(upgraded['replacement_room']);
      const path = `/rooms/${enc(replacement)}/state`;
      const levels = await ben.do('GET', `${path}/m.room.power_levels`);
      assert.deepEqual(levels['users'], { [anna.id]: 100, [cleo.id]: 50 });
      const create = await ben.do('GET', `${path}/m.room.create`);
      assert.deepEqual([create['room_version'], create['predecessor']], ['12', { room_id: oldRoom }]);
      const tombstone = await ben.do('GET', `/rooms/${enc(oldRoom)}/state/m.room.tombstone`);
      assert.equal(tombstone['replacement_room'], replacement);
    });
  });
});
