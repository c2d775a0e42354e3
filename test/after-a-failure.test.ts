import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Sequence } from '../src/kernel/streams/index.ts';
import { selectedDatabases } from './support/databases/databases.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`an error while an event is written, on ${database}`, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer({ database });
    });
    after(() => server.stop());

    it('answers 500 to a request whose event cannot be written, and delivers the next event in /sync', async () => {
      const { token } = await server.register('alice');
      const call = (method: string, path: string, body?: object) =>
        server.api(method, `/_matrix/client/v3${path}`, { token, ...(body && { body }) });
      const { body } = await call('POST', '/createRoom', {});
      const roomId = String(body['room_id']);
      const since = String((await call('GET', '/sync')).body['next_batch']);
      const { next } = Sequence.prototype;
      Sequence.prototype.next = () => {
        Sequence.prototype.next = next;
        throw new Error('ids ran out');
      };
      const topic = (text: string) =>
        call('PUT', `/rooms/${encodeURIComponent(roomId)}/state/m.room.topic`, { topic: text });
      assert.equal((await topic('fails')).status, 500);
      assert.equal((await topic('works')).status, 200);
      const sync = await call('GET', `/sync?since=${since}&timeout=10000`);
      assert.match(JSON.stringify(sync.body), /"topic":"works"/);
      assert.doesNotMatch(JSON.stringify(sync.body), /"topic":"fails"/);
    });
  });
}
