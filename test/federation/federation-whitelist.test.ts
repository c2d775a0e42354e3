import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startTestServer } from '../support/servers/server.ts';

describe('GET /_synapse/client/v1/config/federation_whitelist', () => {
  const path = '/_synapse/client/v1/config/federation_whitelist';

  async function answer(enabled: boolean, list: readonly string[] | null) {
    const server = await startTestServer({
      database: 'sqlite',
      config: {
        federation: { federation_whitelist_endpoint_enabled: enabled },
        federationClient: { federation_domain_whitelist: list && [...list] },
      },
    });
    const { token } = await server.register('alice');
    const [known, unknown] = [await server.api('GET', path, { token }), await server.api('GET', path)];
    await server.stop();
    return { ...known, statuses: [known.status, unknown.status] };
  }

  it('returns the federation whitelist to users when it is enabled [option: federation_whitelist_endpoint_enabled]', async () => {
    const listed = await answer(true, ['b.example']);
    assert.deepEqual(listed.body, { whitelist_enabled: true, whitelist: ['b.example'] });
    assert.deepEqual(listed.statuses, [200, 401]);
    assert.deepEqual((await answer(true, null)).body, { whitelist_enabled: false, whitelist: [] });
    assert.deepEqual((await answer(false, ['b.example'])).statuses, [404, 404]);
  });
});
