import assert from 'node:assert/strict';
import { it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer } from '../../../test/support/servers/server.ts';

it('GET /thirdparty/protocols answers {} to users of a server without application services', async () => {
  const [database] = selectedDatabases(import.meta.url);
  const server = await startTestServer({ database: database! });
  try {
    const path = '/_matrix/client/v3/thirdparty/protocols';
    assert.equal((await server.api('GET', path)).status, 401);
    const { token } = await server.register('anna');
    for (const version of ['v3', 'r0', 'unstable']) {
      const { status, body } = await server.api('GET', `/_matrix/client/${version}/thirdparty/protocols`, {
        token,
      });
      assert.deepEqual([status, body], [200, {}], version);
    }
  } finally {
    await server.stop();
  }
});
