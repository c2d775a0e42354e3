import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('redaction of a user by the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let anna: TestClient;
    before(async () => {
      const few = { per_second: 0.001, burst_count: 100 };
      server = await startTestServer({ database: kind, config: { rateLimits: { rc_message: few } } });
      admin = await Administration.open(server);
      anna = await TestClient.register(server, 'anna');
    });
    after(() => server.stop());

    let users = 0;
    const newUser = () => TestClient.register(server, `user${users++}`);
    const bodies = async (roomId: string) => {
      const { chunk } = await anna.do('GET', `/rooms/${enc(roomId)}/messages?dir=b&limit=500`);
      return (chunk as { type: string; content: { body?: string } }[])
        .filter(({ type }) => type === 'm.room.message')
        .map(({ content }) => content.body)
        .reverse();
    };
    const status = (redactId: unknown) => admin.do('GET', `/v1/user/redact_status/${String(redactId)}`);
    const finished = async (redactId: unknown) => {
      for (;;) {
        const found = await status(redactId);
        if (found['status'] === 'complete' || found['status'] === 'failed') return found;
      }
    };
    const redact = async (userId: string, body: object) =>
      (await admin.do('POST', `/v1/user/${enc(userId)}/redact`, body))['redact_id'];

    it('redacts the messages and joins of a user in all rooms, with a reason, and keeps events of other users', async () => {
      const user = await newUser();
      const rooms = [
        await anna.createRoom({ preset: 'public_chat' }),
        await anna.createRoom({ preset: 'public_chat' }),
      ];
      for (const roomId of rooms) {
        await user.join(roomId);
        await user.say(roomId, 'spam');
        await anna.say(roomId, 'kept');
      }
      const done = await finished(await redact(user.id, { rooms: [], reason: 'spam' }));
      assert.deepEqual(done, { status: 'complete', failed_redactions: {} });
      for (const roomId of rooms) assert.deepEqual(await bodies(roomId), [undefined, 'kept']);
      const { chunk } = await anna.do('GET', `/rooms/${enc(rooms[0]!)}/messages?dir=b&limit=2`);
      const [newest] = chunk as { type: string; sender: string; content: { reason?: string } }[];
      assert.deepEqual(
        [newest?.type, newest?.sender, newest?.content.reason],
        ['m.room.redaction', user.id, 'spam'],
      );
    });

    it('redacts the newest events up to the limit, in the given rooms only', async () => {
      const user = await newUser();
      const [first, other] = [await user.createRoom(), await user.createRoom()];
      for (const roomId of [first, other]) {
        await user.membership('invite', roomId, anna);
        await anna.join(roomId);
        for (const body of ['one', 'two', 'three']) await user.say(roomId, body);
      }
      await finished(await redact(user.id, { rooms: [first], limit: 2 }));
      assert.deepEqual(await bodies(first), ['one', undefined, undefined]);
      assert.deepEqual(await bodies(other), ['one', 'two', 'three']);
    });

    it('redacts the events that were sent between two times', async () => {
      const user = await newUser();
      const roomId = await user.createRoom({ preset: 'public_chat' });
      await anna.join(roomId);
      const times: number[] = [];
      for (const body of ['one', 'two', 'three']) {
        const eventId = await user.say(roomId, body);
        const { origin_server_ts: ts } = await anna.do('GET', `/rooms/${enc(roomId)}/event/${enc(eventId)}`);
        times.push(Number(ts));
        // The next message has another time.
        while (Date.now() <= Number(ts)) await user.do('GET', '/account/whoami');
      }
      await finished(await redact(user.id, { rooms: [roomId], after_ts: times[1], before_ts: times[1] }));
      assert.deepEqual(await bodies(roomId), ['one', undefined, 'three']);
    });

    /** Returns the progress of a redaction in the list of tasks. */
    const progress = async (redactId: unknown) => {
      const query = { action_name: 'rooms/redact-user', resource_id: String(redactId) };
      const { scheduled_tasks: tasks } = await admin.do('GET', '/v1/scheduled_tasks', undefined, query);
      return (tasks as { progress: object }[])[0]?.progress;
    };

    it('the progress of a redaction counts all events up to the limit in each room, including failures and events that are redacted already', async () => {
      const user = await newUser();
      const rooms = [await anna.createRoom({ preset: 'public_chat' }), await anna.createRoom()];
      await user.join(rooms[0]!);
      await anna.membership('invite', rooms[1]!, user);
      await user.join(rooms[1]!);
      for (const roomId of rooms) for (const body of ['one', 'two', 'three']) await user.say(roomId, body);
      await finished(await redact(user.id, { rooms: rooms.slice(0, 1), limit: 1 }));
      await user.leave(rooms[1]!);
      const redactId = await redact(user.id, { rooms, limit: 3 });
      const { failed_redactions: failures } = await finished(redactId);
      assert.equal(Object.keys(failures as object).length, 3);
      assert.deepEqual(await progress(redactId), { done: 6, total: 6 });
    });

    it('redacts the events in the last room of a list of 10,000 rooms when the server knows no other room of the list', async () => {
      const user = await newUser();
      const roomId = await user.createRoom();
      const eventId = await user.say(roomId, 'spam');
      const rooms = [...Array.from({ length: 9_999 }, (_, index) => `!unknown${index}:test`), roomId];
      const redactId = await redact(user.id, { rooms });
      assert.deepEqual((await finished(redactId))['failed_redactions'], {});
      const { content } = await user.do('GET', `/rooms/${enc(roomId)}/event/${enc(eventId)}`);
      assert.deepEqual(content, {});
      assert.deepEqual(await progress(redactId), { done: 2, total: 2 });
    });

    it('redacts more events than the rate limit of the user allows, and continues after a restart', async () => {
      const user = await newUser();
      const roomId = await user.createRoom({ preset: 'public_chat' });
      await anna.join(roomId);
      for (let index = 0; index < 80; index++) await user.say(roomId, `${index}`);
      const redactId = await redact(user.id, { rooms: [roomId] });
      await server.restart();
      assert.deepEqual((await finished(redactId))['failed_redactions'], {});
      assert.deepEqual(new Set(await bodies(roomId)), new Set([undefined]));
      // The join of the user is redacted, too.
      assert.deepEqual(await progress(redactId), { done: 81, total: 81 });
    });

    it('reports the events that could not be redacted, and with use_admin redacts them as the administrator', async () => {
      const user = await newUser();
      const roomId = await anna.createRoom({ preset: 'public_chat' });
      await user.join(roomId);
      const eventId = await user.say(roomId, 'spam');
      await user.leave(roomId);
      const failed = async (body: object) =>
        Object.keys((await finished(await redact(user.id, body)))['failed_redactions'] as object);
      assert.ok((await failed({ rooms: [roomId] })).includes(eventId));
      assert.ok((await failed({ rooms: [roomId], use_admin: true })).includes(eventId));
      await admin.admin.join(roomId);
      await admin.do('POST', `/v1/rooms/${enc(roomId)}/make_room_admin`, { user_id: admin.admin.id });
      assert.deepEqual(await failed({ rooms: [roomId], use_admin: true }), []);
      assert.deepEqual(await bodies(roomId), [undefined]);
    });

    it('refuses redactions of unknown users, redactions without the parameter rooms, and unknown redaction ids', async () => {
      const path = `/v1/user/${anna.id}/redact`;
      const [status] = await admin.refused('POST', path, {});
      assert.equal(status, 400);
      const none = await admin.refused('POST', '/v1/user/@none:test/redact', { rooms: [] });
      assert.deepEqual(none, [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.refused('POST', '/v1/user/x/redact', { rooms: [] }), [
        400,
        'M_INVALID_PARAM',
      ]);
      assert.deepEqual(await admin.refused('GET', '/v1/user/redact_status/none'), [404, 'M_NOT_FOUND']);
    });
  });
});
