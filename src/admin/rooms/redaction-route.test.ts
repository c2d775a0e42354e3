import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('POST /rooms/{roomId}/redact/{eventId} of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      server = await startTestServer({ database: kind });
      admin = await Administration.open(server);
      [anna, ben] = [await TestClient.register(server, 'anna'), await TestClient.register(server, 'ben')];
    });
    after(() => server.stop());

    const newRoom = async () => {
      const roomId = await anna.createRoom({ preset: 'public_chat' });
      await ben.join(roomId);
      return roomId;
    };
    const pathOf = (roomId: string, eventId: string) => `/v1/rooms/${enc(roomId)}/redact/${enc(eventId)}`;
    const redact = async (roomId: string, eventId: string, body: object = {}) =>
      (await admin.do('POST', pathOf(roomId, eventId), body)) as { event_id: string; sender: string };
    const contentAndRedaction = async (roomId: string, eventId: string) => {
      const event = await anna.do('GET', `/rooms/${enc(roomId)}/event/${enc(eventId)}`);
      const { redacted_because: because } = (event['unsigned'] ?? {}) as {
        redacted_because?: { event_id: string; sender: string; content: { reason?: string } };
      };
      return { content: event['content'], because };
    };

    it('redacts an event with the reason of the request, as its local sender when the administrator is not in the room', async () => {
      const roomId = await newRoom();
      const eventId = await ben.say(roomId, 'spam');
      const answer = await redact(roomId, eventId, { reason: 'advertisement' });
      assert.equal(answer.sender, ben.id);
      const { content, because } = await contentAndRedaction(roomId, eventId);
      assert.deepEqual(content, {});
      assert.deepEqual(
        [because?.event_id, because?.sender, because?.content.reason],
        [answer.event_id, ben.id, 'advertisement'],
      );
    });

    it('redacts an event as the most powerful local member when its sender has left', async () => {
      const roomId = await newRoom();
      const eventId = await ben.say(roomId, 'spam');
      await ben.leave(roomId);
      assert.equal((await redact(roomId, eventId)).sender, anna.id);
      assert.deepEqual((await contentAndRedaction(roomId, eventId)).content, {});
    });

    it('redacts an event as the administrator when the administrator may redact in the room', async () => {
      const roomId = await newRoom();
      const eventId = await ben.say(roomId, 'spam');
      await admin.admin.join(roomId);
      await admin.do('POST', `/v1/rooms/${enc(roomId)}/make_room_admin`, { user_id: admin.admin.id });
      assert.equal((await redact(roomId, eventId)).sender, admin.admin.id);
    });

    it('sends one redaction when the request is repeated', async () => {
      const roomId = await newRoom();
      const eventId = await ben.say(roomId, 'spam');
      assert.deepEqual(await redact(roomId, eventId), await redact(roomId, eventId));
    });

    it('responds 400 M_UNKNOWN for an event that no local member may redact, and does not redact it', async () => {
      const roomId = await newRoom();
      const eventId = await ben.say(roomId, 'spam');
      await anna.leave(roomId);
      await ben.leave(roomId);
      assert.deepEqual(await admin.refused('POST', pathOf(roomId, eventId), {}), [400, 'M_UNKNOWN']);
      const { event } = await admin.do('GET', `/v1/fetch_event/${enc(eventId)}`);
      assert.equal((event as { content: { body?: string } }).content.body, 'spam');
    });

    it('responds 404 for unknown rooms, unknown events and events of other rooms, and 403 for the create event', async () => {
      const [roomId, other] = [await newRoom(), await newRoom()];
      const eventId = await ben.say(other, 'other');
      assert.deepEqual(await admin.refused('POST', pathOf('!none:test', eventId), {}), [404, 'M_NOT_FOUND']);
      for (const unknown of [eventId, '$none', 'none'])
        assert.deepEqual(await admin.refused('POST', pathOf(roomId, unknown), {}), [404, 'M_NOT_FOUND']);
      const state = await anna.call('GET', `/rooms/${enc(roomId)}/state`);
      const create = (state.body as unknown as { type: string; event_id: string }[]).find(
        ({ type }) => type === 'm.room.create',
      );
      assert.deepEqual(await admin.refused('POST', pathOf(roomId, create!.event_id), {}), [
        403,
        'M_FORBIDDEN',
      ]);
    });

    it('redactions are in the audit log with the room and the event', async () => {
      const roomId = await newRoom();
      const eventId = await ben.say(roomId, 'spam');
      await redact(roomId, eventId, { reason: 'secret reason' });
      const { entries } = await admin.do('GET', '/v1/audit_log', undefined, { limit: 1 });
      const [newest] = entries as { operation: string; target: string; admin: string }[];
      assert.deepEqual(
        [newest?.operation, newest?.target, newest?.admin],
        ['redactRoomEvent', `${roomId} ${eventId}`, admin.admin.id],
      );
    });
  });
});
