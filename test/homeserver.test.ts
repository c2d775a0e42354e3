import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { serverDatabases } from './support/databases/databases.ts';
import { startTestServer, type TestServer, type TestUser } from './support/servers/server.ts';

for (const database of serverDatabases(import.meta.url)) {
  describe(`a homeserver on ${database}`, () => {
    let server: TestServer;
    let alice: TestUser;

    before(async () => {
      server = await startTestServer({ database, config: { observability: { enable_metrics: true } } });
      alice = await server.register('alice');
    });
    after(() => server.stop());

    it('answers GET /health with OK and GET / with a page on registering the first user', async () => {
      assert.equal((await server.api('GET', '/health')).raw, 'OK');
      const page = await server.api('GET', '/');
      assert.match(page.headers.get('content-type')!, /text\/html/);
      assert.match(page.raw, /register-user/);
    });

    it('accepts access tokens from before a restart', async () => {
      const path = '/_matrix/client/v3/account/whoami';
      assert.equal((await server.api('GET', path, { token: alice.token })).body['user_id'], '@alice:test');
      await server.restart();
      assert.equal((await server.api('GET', path, { token: alice.token })).body['device_id'], alice.deviceId);
      assert.equal((await server.api('GET', path, { token: 'nonsense' })).body['errcode'], 'M_UNKNOWN_TOKEN');
    });

    it('answers GET /_synapse/metrics with 404 on a listener without the metrics resource', async () => {
      assert.equal((await server.api('GET', '/_synapse/metrics')).status, 404);
    });
  });
}

describe('a homeserver', () => {
  it('redirects GET / to the web client [option: web_client_location]', async () => {
    const web_client_location = 'https://app.example.org/';
    const server = await startTestServer({
      database: 'sqlite',
      config: { server: { server_name: 'test', web_client_location } },
    });
    const answer = await server.api('GET', '/');
    await server.stop();
    assert.deepEqual([answer.status, answer.headers.get('location')], [302, web_client_location]);
  });

  it('fails to start with EADDRINUSE when the port of a listener is in use', async () => {
    const server = await startTestServer({ database: 'sqlite' });
    const listener = {
      port: Number(new URL(server.baseUrl).port),
      type: 'http' as const,
      bind_addresses: ['127.0.0.1'],
      resources: [],
    };
    await assert.rejects(
      startTestServer({ database: 'sqlite', config: { http: { listeners: [listener] } } }),
      {
        code: 'EADDRINUSE',
      },
    );
    await server.stop();
  });
});
