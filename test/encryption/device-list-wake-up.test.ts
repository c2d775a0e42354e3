import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { serverDatabases } from '../support/databases/databases.ts';
import { startTestServer } from '../support/servers/server.ts';

const client = '/_matrix/client/v3';

for (const database of serverDatabases(import.meta.url)) {
  describe(`a device list change, on ${database}`, () => {
    it('wakes the long poll of a user who shares a room with the changed user, even if that user has made no request since the start', async (context) => {
      const server = await startTestServer({
        database,
        config: { presence: { presence: { enabled: false } } },
      });
      context.after(() => server.stop());
      const [alice, bob] = [await server.register('alice'), await server.register('bob')];
      const body = { preset: 'public_chat' };
      const created = await server.api('POST', `${client}/createRoom`, { token: alice.token, body });
      await server.api('POST', `${client}/join/${created.body['room_id']}`, { token: bob.token, body: {} });
      const sync = (query: Record<string, string | number>) =>
        server.api('GET', `${client}/sync`, { token: alice.token, query });
      const { body: first } = await sync({});
      await server.restart();

      const waiting = sync({ since: first['next_batch'] as string, timeout: 120_000 });
      // Gives the long poll time to begin waiting.
      await sleep(300);
      const startedAt = performance.now();
      await server.api('POST', `${client}/logout`, { token: bob.token, body: {} });
      const { body: answer } = await waiting;
      assert.deepEqual((answer['device_lists'] as { changed: string[] }).changed, [bob.userId]);
      assert.ok(performance.now() - startedAt < 60_000, 'the long poll was not woken');
    });
  });
}
