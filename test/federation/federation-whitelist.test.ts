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
    const [withToken, withoutToken] = [
      await server.api('GET', path, { token }),
      await server.api('GET', path),
    ];
    await server.stop();
    return { ...withToken, statuses: [withToken.status, withoutToken.status] };
  }

  it('returns the federation whitelist to logged-in users when the endpoint is enabled [option: federation_whitelist_endpoint_enabled]', async () => {
    const listed = await answer(true, ['b.example']);
    assert.deepEqual(listed.body, { whitelist_enabled: true, whitelist: ['b.example'] });
    assert.deepEqual(listed.statuses, [200, 401]);
    assert.deepEqual((await answer(true, null)).body, { whitelist_enabled: false, whitelist: [] });
    assert.deepEqual((await answer(false, ['b.example'])).statuses, [404, 404]);
  });
});
