import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  ScriptedAuthenticationService,
  serviceSecret as secret,
} from '../../../test/support/other-servers/authentication-service.ts';
import { startTestServer } from '../../../test/support/servers/server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('an authentication service with force_http2', () => {
    it('receives requests by HTTP/2 [option: proto_authentication_service.force_http2]', async () => {
      const service = await ScriptedAuthenticationService.start('http2');
      const server = await startTestServer({
        database: open.kind,
        config: {
          accounts: {
            proto_authentication_service: {
              enabled: true,
              endpoint: service.endpoint,
              secret,
              force_http2: true,
            },
          },
        },
      });
      const { body } = await server.api('GET', '/_matrix/client/v1/auth_metadata');
      assert.equal(body['issuer'], 'https://auth.example/');
      await server.api('GET', '/_matrix/client/v3/account/whoami', { token: 'unknown' });
      assert.deepEqual(
        service.introspections.map(({ httpVersion }) => httpVersion),
        ['2.0'],
      );
      await server.stop();
      await service.stop();
    });
  });
});
