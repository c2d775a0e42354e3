import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { ClientIdentity } from '../../../test/support/users/client-device.ts';
import { TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('features of accounts in the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let anna: TestClient;
    before(async () => {
      server = await startTestServer({ database: kind });
      admin = await Administration.open(server);
      anna = await TestClient.register(server, 'anna');
    });
    after(() => server.stop());

    it('lets a user replace the cross-signing keys once without a password', async () => {
      const path = '/v1/users/@anna:test/_allow_cross_signing_replacement_without_uia';
      const upload = async () =>
        (await anna.call('POST', '/keys/device_signing/upload', new ClientIdentity(anna.id).keys())).status;
      assert.deepEqual(await admin.refused('POST', path), [404, 'M_NOT_FOUND']);
      assert.equal(await upload(), 200);
      assert.equal(await upload(), 401);
      const before = Date.now();
      const allowed = await admin.do('POST', path);
      assert.deepEqual(Object.keys(allowed), ['updatable_without_uia_before_ms']);
      const until = Number(allowed['updatable_without_uia_before_ms']);
      assert.ok(until >= before + 600_000 && until <= Date.now() + 600_000, `${until - before} ms`);
      assert.equal(await upload(), 200);
      assert.equal(await upload(), 401);
      await admin.do('POST', '/v1/users/@anna:test/allow_cross_signing_replacement');
      assert.equal(await upload(), 200);
      assert.deepEqual(
        await admin.refused('POST', '/v1/users/@nobody:test/allow_cross_signing_replacement'),
        [404, 'M_NOT_FOUND'],
      );
    });

    it('shows the experimental features of a user, and refuses to turn one off, since they are on for all users', async () => {
      const path = '/v1/experimental_features/@anna:test';
      const features = { msc3881: true, msc3575: true, msc4222: true };
      assert.deepEqual(await admin.do('GET', path), { features });
      assert.deepEqual(await admin.do('PUT', path, { features: { msc3881: true, msc3575: true } }), {});
      for (const refused of [{ msc3881: false }, { msc1: true }, { toString: true }]) {
        assert.deepEqual(await admin.refused('PUT', path, { features: refused }), [400, 'M_INVALID_PARAM']);
      }
      assert.equal((await admin.refused('PUT', path, { features: {} }))[0], 400);
      assert.equal((await admin.refused('PUT', path, {}))[0], 400);
      const remote = await admin.refused('GET', '/v1/experimental_features/@anna:elsewhere.example');
      assert.deepEqual(remote, [400, 'M_INVALID_PARAM']);
    });

    it('locks an account when its validity ends, and unlocks it when it is renewed', async () => {
      const ben = await TestClient.register(server, 'ben');
      const path = '/v1/account_validity/validity';
      const renew = (expiration_ts: number) => admin.do('POST', path, { user_id: ben.id, expiration_ts });
      const errcode = async () => (await ben.call('GET', '/account/whoami')).body['errcode'];
      const later = Date.now() + 3_600_000;
      assert.deepEqual(await renew(later), { expiration_ts: later });
      assert.equal(await errcode(), undefined);
      assert.deepEqual(await renew(1_000), { expiration_ts: 1_000 });
      await eventually('the account to be locked', async () => (await errcode()) === 'M_USER_LOCKED');
      await renew(later);
      assert.equal(await errcode(), undefined);
      // An account that an administrator has locked stays locked.
      await admin.do('PUT', '/v2/users/@ben:test', { locked: true });
      await renew(later);
      assert.equal(await errcode(), 'M_USER_LOCKED');
    });

    it('refuses to renew accounts of unknown and remote users, and without a valid expiration_ts', async () => {
      const path = '/v1/account_validity/validity';
      const user_id = anna.id;
      for (const [body, expected] of [
        [{ expiration_ts: 1 }, [400, 'M_BAD_JSON']],
        [{ user_id }, [400, 'M_MISSING_PARAM']],
        [{ user_id: '@nobody:test', expiration_ts: 1 }, [404, 'M_NOT_FOUND']],
        [{ user_id: '@a:elsewhere.example', expiration_ts: 1 }, [400, 'M_INVALID_PARAM']],
        [{ user_id, expiration_ts: 1e300 }, [400, 'M_BAD_JSON']],
      ] as const) {
        assert.deepEqual(await admin.refused('POST', path, body), expected, JSON.stringify(body));
      }
    });
  });
});
