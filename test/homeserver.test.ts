import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { createHomeserver } from '../src/homeserver.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { silentLogger } from '../src/kernel/observability/index.ts';
import { systemRandomness } from '../src/kernel/randomness.ts';
import { migrations } from '../src/slices.ts';
import { eventually } from './clients/eventually.ts';
import { makeTestDatabase, selectedDatabases } from './support/databases/databases.ts';
import { freePort } from './support/network/free-port.ts';
import {
  startTestServer,
  type TestServer,
  type TestUser,
  testConfiguration,
} from './support/servers/server.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`a homeserver on ${database}`, () => {
    let server: TestServer;
    let alice: TestUser;

    before(async () => {
      server = await startTestServer({ database, config: { observability: { enable_metrics: true } } });
    });
    after(() => server.stop());

    it('answers GET /health with OK and GET / with a page on registering the first user', async () => {
      assert.equal((await server.api('GET', '/health')).raw, 'OK');
      const page = await server.api('GET', '/');
      assert.match(page.headers.get('content-type')!, /text\/html/);
      assert.match(page.raw, /register-user/);
      alice = await server.register('alice');
      assert.doesNotMatch((await server.api('GET', '/')).raw, /register-user/);
    });

    it('accepts access tokens from before a restart', async () => {
      const path = '/_matrix/client/v3/account/whoami';
      assert.equal((await server.api('GET', path, { token: alice.token })).body['user_id'], '@alice:test');
      await server.restart();
      assert.equal((await server.api('GET', path, { token: alice.token })).body['device_id'], alice.deviceId);
      assert.equal((await server.api('GET', path, { token: 'nonsense' })).body['errcode'], 'M_UNKNOWN_TOKEN');
    });

    it('answers GET /health/ready with 200 while it serves, and with 503 once it stops', async () => {
      assert.equal((await server.api('GET', '/health/ready')).raw, 'Ready');
      // The head of this request is complete only after the stop has begun.
      const socket = connect(Number(new URL(server.baseUrl).port), '127.0.0.1');
      await new Promise<void>((sent) =>
        socket.write('GET /health/ready HTTP/1.1\r\nHost: a\r\n', () => sent()),
      );
      await server.api('GET', '/health');
      const restarted = server.restart();
      socket.end('\r\n');
      assert.match(await text(socket), /^HTTP\/1\.1 503 [\s\S]*\r\n\r\nThe server is stopping$/);
      await restarted;
      assert.equal((await server.api('GET', '/health/ready')).raw, 'Ready');
    });

    it('answers GET /_synapse/metrics with 404 on a listener without the metrics resource', async () => {
      assert.equal((await server.api('GET', '/_synapse/metrics')).status, 404);
    });

    it('closes its database, its other listeners and its threads when the port of one listener is in use', async () => {
      const testDatabase = await makeTestDatabase(database, migrations);
      const folder = mkdtempSync(join(tmpdir(), 'hearth-media-'));
      const start = async (ports: readonly number[]) => {
        const listeners = ports.map((port) => ({
          port,
          type: 'http' as const,
          bind_addresses: ['127.0.0.1'],
          resources: [{ names: ['client' as const] }],
        }));
        const homeserver = createHomeserver({
          configuration: testConfiguration({ http: { listeners }, media: { media_store_path: folder } }),
          clock: systemClock,
          randomness: systemRandomness,
          log: silentLogger,
          databaseOptions: testDatabase.options,
        });
        const { addresses } = await homeserver.start();
        await homeserver.stop();
        return addresses;
      };
      const unusedPort = await freePort();
      const [address] = await start([unusedPort]);
      const portInUse = Number(new URL(server.baseUrl).port);
      // Connections and timers are left out, because another server in this process opens and closes them, too.
      const kinds = ['TCPServerWrap', 'MessagePort'];
      const openResources = () =>
        process
          .getActiveResourcesInfo()
          .filter((kind) => kinds.includes(kind))
          .sort();
      const openBefore = openResources();
      await assert.rejects(start([unusedPort, portInUse]), { code: 'EADDRINUSE' });
      await eventually(`only ${openBefore} to be open`, () => isDeepStrictEqual(openResources(), openBefore));
      // A start succeeds only if the server that failed has released the lock of the database.
      assert.deepEqual(await start([unusedPort]), [address]);
      await testDatabase.remove();
      rmSync(folder, { recursive: true });
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
