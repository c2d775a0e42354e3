import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import type { ManualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  type ScriptedAuthenticationService,
  serviceSecret as secret,
} from '../../../test/support/other-servers/authentication-service.ts';
import type { TestServer } from '../../../test/support/servers/server.ts';
import { apiScope, DelegatingServer } from '../test/delegating-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('a server that introspects tokens at an authentication service', () => {
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
      const [deviceUser, lockedUser] = [await newUser(), await newUser()];
      await whoami(deviceUser.token);
      const deleted = await provision('POST', 'delete_device', {
        localpart: deviceUser.localpart,
        device_id: 'PHONE',
      });
      assert.equal(deleted.status, 204);
      assert.deepEqual(await whoami(deviceUser.token), [401, 'M_UNKNOWN_TOKEN']);
      await whoami(lockedUser.token);
      await provision('POST', 'provision_user', { localpart: lockedUser.localpart, locked: true });
      assert.deepEqual(await whoami(lockedUser.token), [401, 'M_USER_LOCKED']);
      await provision('POST', 'provision_user', { localpart: lockedUser.localpart, locked: false });
      assert.deepEqual(await whoami(lockedUser.token), [lockedUser.userId, 'PHONE']);
      await provision('POST', 'delete_user', { localpart: lockedUser.localpart, erase: false });
      assert.deepEqual(await whoami(lockedUser.token), [401, 'M_UNKNOWN_TOKEN']);
    });

    it('refuses tokens for which the authentication service answers no API scope, no known user or several devices, and accepts unstable scopes and device_id', async () => {
      const { localpart } = await newUser();
      const whoamiFor = async (more: Record<string, unknown>) => {
        const token = `mat_${count++}`;
        service.tokens.set(token, { active: true, scope: apiScope, username: localpart, ...more });
        return whoami(token);
      };
      assert.deepEqual(await whoamiFor({ scope: 'openid' }), [401, 'M_UNKNOWN_TOKEN']);
      assert.deepEqual(
        await whoamiFor({ username: 'nobody' }),
        [500, 'M_UNKNOWN'],
        'not a reason to log out',
      );
      assert.deepEqual(await whoamiFor({ username: undefined }), [500, 'M_UNKNOWN']);
      const two = `${apiScope} urn:matrix:client:device:A urn:matrix:client:device:B`;
      assert.deepEqual(await whoamiFor({ scope: two }), [500, 'M_UNKNOWN']);
      const unstable = 'urn:matrix:org.matrix.msc2967.client:';
      const scope = `${unstable}api:* ${unstable}device:PHONE`;
      assert.deepEqual(await whoamiFor({ scope }), [`@${localpart}:test`, 'PHONE']);
      assert.deepEqual(await whoamiFor({ device_id: 'PHONE' }), [`@${localpart}:test`, 'PHONE']);
    });

    it('introspects further tokens after the authentication service has answered 400 to several introspections', async () => {
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
      const logText = hearth.lines.join('');
      assert.match(logText, /A request to the authentication service failed/);
      assert.ok(!logText.includes(token) && !logText.includes(secret));
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
  });
});
