import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('events by the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let anna: TestClient;
    before(async () => {
      server = await startTestServer({ database: kind });
      admin = await Administration.open(server);
      anna = await TestClient.register(server, 'anna');
    });
    after(() => server.stop());

    it('GET /fetch_event returns any event of any room with its signatures', async () => {
      const eventId = await anna.say(await anna.createRoom(), 'hello');
      const { event } = await admin.do('GET', `/v1/fetch_event/${enc(eventId)}`);
      const { event_id, sender, signatures } = event as Record<string, unknown>;
      assert.deepEqual(
        [event_id, sender, Object.keys(signatures as object)],
        [eventId, '@anna:test', ['test']],
      );
      assert.deepEqual(await admin.refused('GET', '/v1/fetch_event/$none'), [404, 'M_NOT_FOUND']);
    });
  });
});
