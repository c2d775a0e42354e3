import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forServerDatabases } from '../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../test/support/servers/server.ts';
import { TestClient } from '../../test/support/users/test-client.ts';
import type { Route } from '../kernel/http/index.ts';

/** The only route without a token: a MAC proves that the caller knows the shared secret. */
const open = '/_server/admin/v1/register';

forServerDatabases(import.meta.url, ({ kind }) => {
  describe('routes below /_server/admin', () => {
    let server: TestServer;
    let routes: (readonly [method: string, path: string])[];
    before(async () => {
      server = await startTestServer({ database: kind });
      const pathsOf = ({ contract: { path } }: Route) => (typeof path === 'string' ? [path] : path);
      routes = server.homeserver.routes
        .flatMap((route) => pathsOf(route).map((path) => [route.contract.method, path] as const))
        .filter(([, path]) => path.startsWith('/_server/admin/') && path !== open);
    });
    after(() => server.stop());

    it('answer 403 M_FORBIDDEN to users who are not administrators, and 401 M_MISSING_TOKEN to requests without a token', async () => {
      assert.ok(routes.length > 60, `${routes.length} routes`);
      const user = await TestClient.register(server, 'anna');
      for (const [method, path] of routes) {
        const url = path.replace('/_server/', '/_synapse/').replaceAll(/:\w+/g, 'x');
        const body = method === 'GET' ? undefined : {};
        const refused = await user.ask(method, url, body);
        assert.deepEqual(
          [refused.status, refused.body['errcode']],
          [403, 'M_FORBIDDEN'],
          `${method} ${path}`,
        );
        const anonymous = await server.api(method, url, { body });
        const answer = [anonymous.status, anonymous.body['errcode']];
        assert.deepEqual(answer, [401, 'M_MISSING_TOKEN'], `${method} ${path}`);
      }
    });
  });
});
