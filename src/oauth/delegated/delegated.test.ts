import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import type { ManualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import type { ScriptedAuthenticationService } from '../../../test/support/other-servers/authentication-service.ts';
import type { TestServer } from '../../../test/support/servers/server.ts';
import { ClientIdentity } from '../../../test/support/users/client-device.ts';
import { DelegatingServer } from '../test/delegating-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('a server with an authentication service', () => {
    let hearth: DelegatingServer;
    let service: ScriptedAuthenticationService;
    let server: TestServer;
    let clock: ManualClock;
    before(async () => {
      hearth = await DelegatingServer.start(open.kind);
      ({ clock, server, service } = hearth);
    });
    afterEach(() => {
      service.status = 200;
      service.introspections.length = 0;
    });
    after(() => hearth.stop());

    const provision: DelegatingServer['provision'] = (...request) => hearth.provision(...request);
    const newUser = (scope?: string) => hearth.newUser(scope);

    it('serves the metadata of the authentication service, also while the service answers with errors', async () => {
      const metadata = () => server.api('GET', '/_matrix/client/v1/auth_metadata');
      assert.equal((await metadata()).body['issuer'], 'https://auth.example/');
      const reads = service.metadataReads;
      await metadata();
      assert.equal(service.metadataReads, reads);
      await clock.advance(600_000);
      service.status = 500;
      assert.equal((await metadata()).body['issuer'], 'https://auth.example/');
      assert.equal(service.metadataReads, reads + 1);
      const issuer = await server.api('GET', '/_matrix/client/unstable/org.matrix.msc2965/auth_issuer');
      assert.deepEqual(issuer.body, { issuer: 'https://auth.example/' });
      const { body } = await server.api('GET', '/.well-known/matrix/client');
      assert.deepEqual(body['org.matrix.msc2965.authentication'], {
        issuer: 'https://auth.example/',
        account: 'https://auth.example/account',
      });
    });

    it('answers 404 M_UNRECOGNIZED to local logins, registrations and changes of passwords', async () => {
      const { token } = await newUser('urn:synapse:admin:*');
      for (const [method, path] of [
        ['GET', '/_matrix/client/v3/login'],
        ['POST', '/_matrix/client/v3/login'],
        ['POST', '/_matrix/client/v3/refresh'],
        ['POST', '/_matrix/client/v3/logout'],
        ['POST', '/_matrix/client/v3/logout/all'],
        ['POST', '/_matrix/client/v3/register'],
        ['POST', '/_matrix/client/v3/account/password'],
        ['POST', '/_matrix/client/v3/account/deactivate'],
        ['POST', '/_matrix/client/v3/account/3pid/add'],
        ['POST', '/_matrix/client/v3/account/3pid/email/requestToken'],
        ['DELETE', '/_matrix/client/v3/devices/PHONE'],
        ['POST', '/_matrix/client/v3/delete_devices'],
        ['GET', '/_synapse/client/register'],
        ['GET', '/_synapse/client/oauth2/authorize'],
        ['GET', '/_synapse/client/oidc/callback'],
        ['POST', '/_synapse/client/oidc/backchannel_logout'],
        ['GET', '/_synapse/client/saml2/metadata.xml'],
        ['POST', '/_synapse/client/saml2/authn_response'],
        ['GET', '/_synapse/client/sso/confirm/saml'],
        ['GET', '/_matrix/client/r0/login/cas/ticket'],
        ['GET', '/_synapse/admin/v1/register'],
        ['GET', '/_synapse/admin/v1/registration_tokens'],
        ['POST', '/_synapse/admin/v1/reset_password/@user:test'],
      ] as const) {
        const body = method === 'GET' ? {} : { body: { devices: [] } };
        const answer = await server.api(method, path, { token, ...body });
        assert.deepEqual([answer.status, answer.body['errcode']], [404, 'M_UNRECOGNIZED'], path);
      }
      const { body } = await server.api('GET', '/_matrix/client/v3/capabilities', { token });
      const capabilities = body['capabilities'] as Record<string, { enabled: boolean }>;
      for (const name of ['m.change_password', 'm.3pid_changes', 'm.get_login_token']) {
        assert.equal(capabilities[name]!.enabled, false, name);
      }
    });

    it('lets application services register users without a session, and act as these users, without a request to the authentication service, and refuses logins of application services', async () => {
      const v3 = '/_matrix/client/v3';
      const register = (more: object, token = hearth.bridge.token) => {
        const body = { type: 'm.login.application_service', username: 'irc_anna', ...more };
        return server.api('POST', `${v3}/register`, { token, body });
      };
      const refused = await register({});
      assert.deepEqual([refused.status, refused.body['errcode']], [400, 'M_APPSERVICE_LOGIN_UNSUPPORTED']);
      const stranger = await register({ inhibit_login: true }, (await newUser()).token);
      assert.deepEqual([stranger.status, stranger.body['errcode']], [401, 'M_UNKNOWN_TOKEN']);
      service.introspections.length = 0;
      const registered = await register({ inhibit_login: true });
      assert.deepEqual(registered.body, { user_id: '@irc_anna:test', home_server: 'test' });
      const asAnna = { token: hearth.bridge.token, query: { user_id: '@irc_anna:test' } };
      const created = await server.api('PUT', `${v3}/devices/BRIDGE`, { ...asAnna, body: {} });
      assert.equal(created.status, 201, created.raw);
      for (let i = 0; i < 2; i++) {
        const body = new ClientIdentity('@irc_anna:test').keys();
        const keys = await server.api('POST', `${v3}/keys/device_signing/upload`, { ...asAnna, body });
        assert.equal(keys.status, 200, keys.raw);
      }
      const deleted = await server.api('DELETE', `${v3}/devices/BRIDGE`, { ...asAnna, body: {} });
      assert.equal(deleted.status, 200, deleted.raw);
      await server.api('PUT', `${v3}/devices/BRIDGE2`, { ...asAnna, body: {} });
      const deletedTogether = await server.api('POST', `${v3}/delete_devices`, {
        ...asAnna,
        body: { devices: ['BRIDGE2'] },
      });
      assert.equal(deletedTogether.status, 200, deletedTogether.raw);
      const { devices } = (await server.api('GET', `${v3}/devices`, asAnna)).body;
      assert.deepEqual(devices, []);
      const login = await server.api('POST', `${v3}/login`, {
        token: hearth.bridge.token,
        body: {
          type: 'm.login.application_service',
          identifier: { type: 'm.id.user', user: 'irc_anna' },
        },
      });
      assert.deepEqual([login.status, login.body['errcode']], [400, 'M_APPSERVICE_LOGIN_UNSUPPORTED']);
      assert.equal(service.introspections.length, 0);
      const taken = await provision('GET', 'is_localpart_available?localpart=irc_ben');
      assert.deepEqual([taken.status, taken.body['errcode']], [400, 'M_EXCLUSIVE']);
    });

    it('lets clients replace cross-signing keys once after the authentication service has allowed it', async () => {
      const { token, userId, localpart } = await newUser();
      const upload = () => {
        const body = new ClientIdentity(userId).keys();
        return server.api('POST', '/_matrix/client/v3/keys/device_signing/upload', { token, body });
      };
      assert.equal((await upload()).status, 200);
      const challenge = await upload();
      const url = 'https://auth.example/account?action=org.matrix.cross_signing_reset';
      assert.deepEqual((challenge.body['params'] as Record<string, unknown>)['m.oauth'], { url });
      const fallback = await fetch(
        `${server.baseUrl}/_matrix/client/v3/auth/m.oauth/fallback/web?session=${challenge.body['session']}`,
        { redirect: 'manual' },
      );
      assert.equal(fallback.headers.get('location'), url);
      await provision('POST', 'allow_cross_signing_reset', { localpart });
      assert.deepEqual([(await upload()).status, (await upload()).status], [200, 401]);
    });
  });
});
