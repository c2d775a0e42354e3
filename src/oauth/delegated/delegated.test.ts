import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import type { ManualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  type ScriptedAuthenticationService,
  serviceSecret as secret,
} from '../../../test/support/other-servers/authentication-service.ts';
import type { TestServer } from '../../../test/support/servers/server.ts';
import { ClientIdentity } from '../../../test/support/users/client-device.ts';
import { apiScope, DelegatingServer } from '../test/delegating-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('a server with an authentication service', () => {
    let hearth: DelegatingServer;
    let service: ScriptedAuthenticationService;
    let server: TestServer;
    let clock: ManualClock;
    let count = 0;
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
    const whoami = (token: string) => hearth.whoami(token);
    const newUser = (scope?: string) => hearth.newUser(scope);

    it('accepts the access tokens of the authentication service [option: proto_authentication_service.enabled] [option: proto_authentication_service.endpoint] [option: proto_authentication_service.secret]', async () => {
      const { token, userId } = await newUser();
      assert.deepEqual(await whoami(token), [userId, 'PHONE']);
      const { authorization, supportsDeviceId } = service.introspections[0]!;
      assert.deepEqual([authorization, supportsDeviceId], [`Bearer ${secret}`, '1']);
      assert.deepEqual(await whoami('unknown'), [401, 'M_UNKNOWN_TOKEN']);
    });

    it('introspects a token once in two minutes, once for concurrent requests, and again when it has expired', async () => {
      const { token, userId } = await newUser();
      await Promise.all([1, 2, 3].map(() => whoami(token)));
      await whoami(token);
      assert.equal(service.introspections.length, 1);
      service.tokens.set(token, { active: false });
      await clock.advance(119_000);
      assert.deepEqual(await whoami(token), [userId, 'PHONE']);
      await clock.advance(1_000);
      assert.deepEqual(await whoami(token), [401, 'M_UNKNOWN_TOKEN']);
      await whoami(token);
      assert.equal(service.introspections.length, 2, 'refusals are cached too');

      const short = await newUser();
      service.tokens.set(short.token, { ...service.tokens.get(short.token), expires_in: 10 });
      await whoami(short.token);
      await clock.advance(10_000);
      await whoami(short.token);
      assert.equal(service.introspections.length, 4);
    });

    it('refuses a token at once when its device is deleted, or its user is deactivated or locked', async () => {
      const [one, other] = [await newUser(), await newUser()];
      await whoami(one.token);
      const deleted = await provision('POST', 'delete_device', {
        localpart: one.localpart,
        device_id: 'PHONE',
      });
      assert.equal(deleted.status, 204);
      assert.deepEqual(await whoami(one.token), [401, 'M_UNKNOWN_TOKEN']);
      await whoami(other.token);
      await provision('POST', 'provision_user', { localpart: other.localpart, locked: true });
      assert.deepEqual(await whoami(other.token), [401, 'M_USER_LOCKED']);
      await provision('POST', 'provision_user', { localpart: other.localpart, locked: false });
      assert.deepEqual(await whoami(other.token), [other.userId, 'PHONE']);
      await provision('POST', 'delete_user', { localpart: other.localpart, erase: false });
      assert.deepEqual(await whoami(other.token), [401, 'M_UNKNOWN_TOKEN']);
    });

    it('refuses tokens when the answer of the authentication service has no API scope, no user or several devices', async () => {
      const { localpart } = await newUser();
      const answer = async (more: Record<string, unknown>) => {
        const token = `mat_${count++}`;
        service.tokens.set(token, { active: true, scope: apiScope, username: localpart, ...more });
        return whoami(token);
      };
      assert.deepEqual(await answer({ scope: 'openid' }), [401, 'M_UNKNOWN_TOKEN']);
      assert.deepEqual(await answer({ username: 'nobody' }), [500, 'M_UNKNOWN'], 'not a reason to log out');
      assert.deepEqual(await answer({ username: undefined }), [500, 'M_UNKNOWN']);
      const two = `${apiScope} urn:matrix:client:device:A urn:matrix:client:device:B`;
      assert.deepEqual(await answer({ scope: two }), [500, 'M_UNKNOWN']);
      const unstable = 'urn:matrix:org.matrix.msc2967.client:';
      const scope = `${unstable}api:* ${unstable}device:PHONE`;
      assert.deepEqual(await answer({ scope }), [`@${localpart}:test`, 'PHONE']);
      assert.deepEqual(await answer({ device_id: 'PHONE' }), [`@${localpart}:test`, 'PHONE']);
    });

    it('introspects tokens of other users after the authentication service has refused tokens with 400', async () => {
      service.status = 400;
      for (let i = 0; i < 6; i++) assert.deepEqual(await whoami(`strange${i}`), [503, 'M_UNKNOWN']);
      service.status = 200;
      const { token, userId } = await newUser();
      assert.deepEqual(await whoami(token), [userId, 'PHONE']);
    });

    it('answers 503 while the authentication service fails, and does not cache the failure', async () => {
      const { token, userId } = await newUser();
      service.status = 500;
      assert.deepEqual(await whoami(token), [503, 'M_UNKNOWN']);
      service.status = 200;
      assert.deepEqual(await whoami(token), [userId, 'PHONE']);
      service.status = 500;
      await clock.advance(119_000);
      assert.deepEqual(await whoami(token), [userId, 'PHONE'], 'from the cache');
      await clock.advance(1_000);
      assert.deepEqual(await whoami(token), [503, 'M_UNKNOWN'], 'and never 401, by which clients log out');
      service.status = 200;
      assert.deepEqual(await whoami(token), [userId, 'PHONE']);
    });

    it('logs neither tokens nor the secret of the authentication service, also when an introspection fails', async () => {
      const { token } = await newUser();
      hearth.lines.length = 0;
      for (const status of [200, 400, 500]) {
        service.status = status;
        await whoami(`${token}${status}`);
      }
      service.status = 200;
      await whoami(token);
      const all = hearth.lines.join('');
      assert.match(all, /The authentication service does not answer/);
      assert.ok(!all.includes(token) && !all.includes(secret));
    });

    it('pauses requests to an authentication service that has failed three times, for up to 30 seconds', async () => {
      const { token, userId } = await newUser();
      service.status = 500;
      for (let i = 0; i < 6; i++) assert.deepEqual(await whoami(`${token}${i}`), [503, 'M_UNKNOWN']);
      assert.equal(service.introspections.length, 3);
      await clock.advance(1_000);
      for (let i = 0; i < 2; i++) assert.deepEqual(await whoami(token), [503, 'M_UNKNOWN']);
      assert.equal(service.introspections.length, 4);
      await clock.advance(1_000);
      assert.deepEqual(await whoami(token), [503, 'M_UNKNOWN']);
      assert.equal(service.introspections.length, 4, 'the second pause is longer');
      service.status = 200;
      await clock.advance(1_000);
      assert.deepEqual(await whoami(token), [userId, 'PHONE']);
    });

    it('limits the introspections of invalid tokens of a client, and not the use of its cached valid tokens', async () => {
      const { token, userId } = await newUser();
      await whoami(token);
      await clock.advance(60_000);
      service.introspections.length = 0;
      const answers = [];
      for (let i = 0; i < 60; i++) answers.push((await whoami(`guess${count++}`))[1]);
      assert.equal(service.introspections.length, 50);
      assert.deepEqual([answers[49], answers[50]], ['M_UNKNOWN_TOKEN', 'M_LIMIT_EXCEEDED']);
      assert.deepEqual(await whoami(token), [userId, 'PHONE']);
      await clock.advance(60_000);
      assert.deepEqual(await whoami('guess'), [401, 'M_UNKNOWN_TOKEN']);
    });

    it('grants the rights of an administrator to tokens with the scope of administrators', async () => {
      const [admin, user] = [await newUser('urn:synapse:admin:*'), await newUser()];
      const list = ({ token }: { token: string }) => server.api('GET', '/_synapse/admin/v2/users', { token });
      assert.deepEqual([(await list(admin)).status, (await list(user)).status], [200, 403]);
    });

    it('serves the metadata of the authentication service, also while the service does not answer', async () => {
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

    it('lets application services register users without a session, and use them and their devices, without a request to the authentication service', async () => {
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

    describe('the endpoints for an authentication service', () => {
      it('refuses requests of the authentication service without the shared secret with 403 M_FORBIDDEN', async () => {
        const { token, localpart } = await newUser('urn:synapse:admin:*');
        for (const wrong of [token, '', 'the-shared-secre']) {
          const answer = await provision('GET', `query_user?localpart=${localpart}`, undefined, wrong);
          assert.deepEqual([answer.status, answer.body['errcode']], [403, 'M_FORBIDDEN']);
        }
        assert.deepEqual(await whoami(secret), [401, 'M_UNKNOWN_TOKEN']);
      });

      it('creates, changes and describes users for the authentication service', async () => {
        const localpart = 'provisioned';
        const free = () => provision('GET', `is_localpart_available?localpart=${localpart}`);
        assert.equal((await free()).status, 200);
        const created = await provision('POST', 'provision_user', {
          localpart,
          set_displayname: 'Provisioned',
          set_emails: ['a@example.org'],
        });
        assert.equal(created.status, 201);
        const taken = await free();
        assert.deepEqual([taken.status, taken.body['errcode']], [400, 'M_USER_IN_USE']);
        const query = async () => (await provision('GET', `query_user?localpart=${localpart}`)).body;
        assert.deepEqual(await query(), {
          user_id: '@provisioned:test',
          display_name: 'Provisioned',
          avatar_url: null,
          is_suspended: false,
          is_deactivated: false,
        });
        await provision('POST', 'set_displayname', { localpart, displayname: 'Changed' });
        assert.equal((await query())['display_name'], 'Changed');
        await provision('POST', 'unset_displayname', { localpart });
        assert.equal((await query())['display_name'], null);
        const set = { localpart, set_displayname: 'Again', set_emails: ['b@example.org'] };
        assert.equal((await provision('POST', 'provision_user', set)).status, 200);
        const avatar = { localpart, set_avatar_url: 'mxc://test/picture', unset_displayname: true };
        await provision('POST', 'provision_user', avatar);
        assert.deepEqual(
          [(await query())['display_name'], (await query())['avatar_url']],
          [null, 'mxc://test/picture'],
        );
        const contradictory = await provision('POST', 'provision_user', { ...set, unset_emails: true });
        assert.deepEqual([contradictory.status, contradictory.body['errcode']], [400, 'M_INVALID_PARAM']);
        await provision('POST', 'delete_user', { localpart, erase: true });
        assert.equal((await query())['is_deactivated'], true);
        await provision('POST', 'reactivate_user', { localpart });
        assert.equal((await query())['is_deactivated'], false);
        const unknown = await provision('GET', 'query_user?localpart=unknown');
        assert.deepEqual([unknown.status, unknown.body['errcode']], [404, 'M_NOT_FOUND']);
      });

      it('replaces the mail addresses of a user for the authentication service', async () => {
        const { localpart, token } = await newUser();
        const addresses = async () => {
          const { body } = await server.api('GET', '/_matrix/client/v3/account/3pid', { token });
          return (body['threepids'] as { address: string }[]).map(({ address }) => address).sort();
        };
        await provision('POST', 'provision_user', {
          localpart,
          set_emails: ['c@example.org', 'D@example.org'],
        });
        assert.deepEqual(await addresses(), ['c@example.org', 'd@example.org']);
        await provision('POST', 'provision_user', { localpart, set_emails: ['d@example.org'] });
        assert.deepEqual(await addresses(), ['d@example.org']);
        await provision('POST', 'provision_user', { localpart, unset_emails: true });
        assert.deepEqual(await addresses(), []);
      });

      it('creates, renames, deletes and synchronizes devices for the authentication service', async () => {
        const { localpart, token } = await newUser();
        const devices = async () => {
          const { body } = await server.api('GET', '/_matrix/client/v3/devices', { token });
          return (body['devices'] as { device_id: string; display_name: string | null }[]).map(
            ({ device_id, display_name }) => [device_id, display_name],
          );
        };
        const device = { localpart, device_id: 'TABLET' };
        assert.equal((await provision('POST', 'upsert_device', device)).status, 201);
        assert.equal((await provision('POST', 'upsert_device', device)).status, 200);
        await provision('POST', 'update_device_display_name', { ...device, display_name: 'Tablet' });
        assert.deepEqual(await devices(), [
          ['PHONE', 'Phone'],
          ['TABLET', 'Tablet'],
        ]);
        await provision('POST', 'sync_devices', { localpart, devices: ['PHONE', 'NEW'] });
        assert.deepEqual(await devices(), [
          ['NEW', null],
          ['PHONE', 'Phone'],
        ]);
      });

      it('creates more devices than one transaction takes when the authentication service synchronizes them', async () => {
        const { localpart, token } = await newUser();
        const ids = Array.from({ length: 2_001 }, (_, index) => `DEVICE${index}`);
        const answer = await provision('POST', 'sync_devices', { localpart, devices: ['PHONE', ...ids] });
        assert.equal(answer.status, 200, answer.raw);
        const { body } = await server.api('GET', '/_matrix/client/v3/devices', { token });
        assert.equal((body['devices'] as unknown[]).length, 2_002);
      });
    });
  });
});
