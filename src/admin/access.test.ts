import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { adminApiDescription, adminApiPath } from '../../scripts/admin-api.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../test/support/servers/server.ts';
import { TestClient } from '../../test/support/users/test-client.ts';
import { pathsOf } from '../kernel/http/index.ts';

const versionPath = '/_server/admin/v1/server_version';

/**
 * Whether a path needs no access token: `register` checks a MAC with the shared secret, the pages of the console contain
 * no data, and the version is also shown to other servers.
 */
const isOpen = (path: string) =>
  ['/_server/admin/v1/register', versionPath].includes(path) || /^\/_server\/admin\/ui(\/|$)/.test(path);

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('routes below /_server/admin', () => {
    let server: TestServer;
    let routes: (readonly [method: string, path: string])[];
    before(async () => {
      server = await startTestServer({ database: kind });
      routes = server.homeserver.routes
        .flatMap((route) => pathsOf(route).map((path) => [route.contract.method, path] as const))
        .filter(([, path]) => path.startsWith('/_server/admin/') && !isOpen(path));
    });
    after(() => server.stop());

    it('describes all routes of the admin API in docs/generated/admin-api.json (if not, run node scripts/generate-docs.ts)', () => {
      const file = join(import.meta.dirname, '..', '..', adminApiPath);
      assert.equal(readFileSync(file, 'utf8'), adminApiDescription(server.homeserver.routes));
    });

    it('has an operation id of its own and a schema of the response for each route of the admin API', () => {
      const contracts = server.homeserver.routes
        .filter((route) => pathsOf(route).some((path) => path.startsWith('/_server/admin/') && !isOpen(path)))
        .map(({ contract }) => contract);
      const incomplete = contracts.filter(({ operationId, response }) => !operationId || !response);
      assert.deepEqual(incomplete, []);
      assert.equal(new Set(contracts.map(({ operationId }) => operationId)).size, contracts.length);
    });

    it('answers 403 M_FORBIDDEN to users who are not administrators, and 401 M_MISSING_TOKEN to requests without a token', async () => {
      assert.ok(routes.length > 60, `${routes.length} routes`);
      const user = await TestClient.register(server, 'anna');
      for (const [method, path] of routes) {
        const url = path.replace('/_server/', '/_synapse/').replaceAll(/:\w+/g, 'x');
        const body = method === 'GET' ? undefined : {};
        const refused = await user.request(method, url, body);
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

    it('answers the version of the server without an access token, under both spellings of the path', async () => {
      for (const path of [versionPath, versionPath.replace('/_server/', '/_synapse/')]) {
        const { status, body } = await server.api('GET', path);
        assert.deepEqual([status, Object.keys(body)], [200, ['server_version']], path);
      }
    });
  });
});
