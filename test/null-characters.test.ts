import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startTestServer } from './support/servers/server.ts';
import { enc, TestClient } from './support/users/test-client.ts';

/** Neither database stores U+0000 in text; PostgreSQL also rejects it in query parameters. */
const nul = enc('a\0b');

describe('U+0000 in ids and content', () => {
  it('answers U+0000 in ids and content like an unknown id or an invalid value, never with a 500', async () => {
    const server = await startTestServer({
      database: 'postgres',
      config: { rooms: { max_event_delay_duration: 86_400_000 } },
    });
    try {
      const anna = await TestClient.register(server, 'anna');
      const roomId = await anna.createRoom();
      const eventId = await anna.say(roomId, 'x');
      const room = `/rooms/${enc(roomId)}`;
      const relations = `/_matrix/client/v1${room}/relations/${enc(eventId)}`;
      const unstable = '/_matrix/client/unstable';
      const delayed = `${unstable}/org.matrix.msc4140${room}/delayed_event`;
      const content = { body: 'a\0b' };
      const pusher = {
        kind: 'http',
        app_id: 'app',
        pushkey: 'key',
        app_display_name: 'App',
        device_display_name: 'Phone',
        profile_tag: 'tag',
        lang: 'en',
        data: { url: 'https://push.example/_matrix/push/v1/notify' },
      };
      const pusherFields = Object.keys(pusher).filter((field) => field !== 'data');
      for (const [method, path, body, status] of [
        ['GET', `${relations}/${nul}`, undefined, 200],
        ['GET', `${relations}/${nul}/${nul}?recurse=true`, undefined, 200],
        ['GET', `${room}/event/$${nul}`, undefined, 404],
        ['PUT', `${room}/redact/$${nul}/1`, {}, 400],
        ['PUT', `${room}/send/m.room.redaction/2`, { redacts: '$a\0b' }, 400],
        ['DELETE', `/directory/room/%23${nul}%3Atest`, undefined, 404],
        ['PUT', `${delayed}/m.x/3`, { delay: 1000, content, state_key: 'a\0b' }, 400],
        ['PUT', `${delayed}/${nul}/4`, { delay: 1000, content }, 400],
        ['PUT', `${delayed}/m.x/a${nul}`, { delay: 1000, content }, 200],
        ['GET', `/devices/${nul}`, undefined, 404],
        ['PUT', `/devices/${nul}`, { display_name: 'x' }, 404],
        ['DELETE', `/devices/${nul}`, {}, 401],
        ...pusherFields.map(
          (field) => ['POST', '/pushers/set', { ...pusher, [field]: 'a\0b' }, 400] as const,
        ),
        ['POST', '/pushers/set', { app_id: 'app', pushkey: 'a\0b', kind: null }, 400],
        ['POST', `${unstable}/org.matrix.simplified_msc3575/sync`, { conn_id: 'a\0b' }, 400],
      ] as const) {
        const url = path.startsWith('/_') ? path : `/_matrix/client/v3${path}`;
        const answer = await server.api(method, url, { token: anna.token, ...(body && { body }) });
        assert.equal(answer.status, status, `${method} ${path}: ${answer.raw}`);
      }
      const auth = {
        type: 'm.login.password',
        identifier: { type: 'm.id.user', user: anna.id },
        password: 'correct horse',
      };
      const deletion = { auth, devices: ['a\0b'] };
      assert.deepEqual(await anna.do('POST', '/delete_devices', deletion), {});
    } finally {
      await server.stop();
    }
  });
});
