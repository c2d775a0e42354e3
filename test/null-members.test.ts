import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from './support/databases/databases.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';
import { enc, TestClient } from './support/users/test-client.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('null in place of optional fields of a body', () => {
    let server: TestServer;
    let anna: TestClient;
    before(async () => {
      server = await startTestServer({ database: kind });
      anna = await TestClient.register(server, 'anna');
    });
    after(() => server.stop());

    it('accepts null like an absent field for optional fields of a body', async () => {
      const list = { since: null, limit: null, filter: null, third_party_instance_id: null };
      await anna.do('POST', '/publicRooms', list);
      await anna.do('POST', '/publicRooms', { filter: { generic_search_term: null } });
      await anna.do('POST', '/user_directory/search', { search_term: 'a', limit: null });
      const nothing = { name: null, topic: null, invite: null, room_alias_name: null, initial_state: null };
      const { room_id: roomId } = await anna.do('POST', '/createRoom', { ...nothing, preset: null });
      const room = `/rooms/${enc(String(roomId))}`;
      await anna.do('POST', `${room}/join`, { reason: null, third_party_signed: null });
      await anna.do('PUT', `${room}/typing/${enc(anna.id)}`, { typing: true, timeout: null });
      await anna.do('POST', `${room}/read_markers`, { 'm.fully_read': null, 'm.read': null });
      await anna.do('POST', '/keys/upload', { device_keys: null, one_time_keys: null, fallback_keys: null });
      await anna.do('POST', '/keys/query', { device_keys: {}, timeout: null });
      const criteria = { search_term: 'x', filter: null, order_by: null, event_context: null, keys: null };
      await anna.do('POST', '/search', { search_categories: { room_events: criteria } });
      const login = {
        type: 'm.login.password',
        identifier: null,
        user: 'anna',
        password: 'correct horse',
        device_id: null,
        initial_device_display_name: null,
        refresh_token: null,
      };
      const { status, raw } = await server.api('POST', '/_matrix/client/v3/login', { body: login });
      assert.equal(status, 200, raw);
    });

    it('rejects null with M_BAD_JSON for required fields of a body', async () => {
      for (const [path, body] of [
        ['/user_directory/search', { search_term: null }],
        ['/keys/query', { device_keys: null }],
      ] as const) {
        const answer = await anna.call('POST', path, body);
        assert.deepEqual([answer.status, answer.body['errcode']], [400, 'M_BAD_JSON'], path);
      }
    });
  });
});
