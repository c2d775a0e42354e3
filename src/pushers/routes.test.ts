import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../test/support/databases/databases.ts';
import type { TestUser } from '../../test/support/servers/server.ts';
import { registerAdmin } from '../../test/support/users/register-admin.ts';
import type { TestClient } from '../../test/support/users/test-client.ts';
import { clientPath } from './test/clients.ts';
import { ServerWithPushers } from './test/server-with-pushers.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`POST /pushers/set and GET /pushers (${database})`, () => {
    let fixture: ServerWithPushers;
    let anna: TestUser;
    let admin: TestClient;
    before(async () => {
      fixture = await ServerWithPushers.start(database);
      admin = await registerAdmin(fixture.server);
      anna = await fixture.server.register('anna');
    });
    after(() => fixture.stop());

    const set = (user: TestUser, body: object) => fixture.post('/pushers/set', user, body);
    const statusAndErrcode = async (user: TestUser, body: object) => {
      const answer = await set(user, body);
      return [answer.status, answer.body['errcode']];
    };
    const remainingPushers = async (userId: string) => {
      const path = `/_synapse/admin/v1/users/${encodeURIComponent(userId)}/pushers`;
      return (await fixture.server.api('GET', path, { token: admin.token })).body['pushers'];
    };
    const login = async (user: string, password = 'correct horse'): Promise<TestUser> => {
      const identifier = { type: 'm.id.user', user };
      const body = { type: 'm.login.password', identifier, password };
      const { body: session } = await fixture.server.api('POST', clientPath('/login'), { body });
      return {
        userId: String(session['user_id']),
        deviceId: String(session['device_id']),
        token: String(session['access_token']),
      };
    };

    it('lists the pushers that a client has set, and replaces and deletes them by app_id and pushkey', async () => {
      const pusher = fixture.pusher('key', { profile_tag: 'tag' });
      assert.equal((await set(anna, pusher)).status, 200);
      const { body } = await fixture.get('/pushers', anna);
      const { 'org.matrix.msc3881.device_id': deviceId, ...listed } = (
        body['pushers'] as Record<string, unknown>[]
      )[0]!;
      assert.deepEqual(listed, { ...pusher, 'org.matrix.msc3881.enabled': true });
      assert.equal(deviceId, anna.deviceId);
      const changed = { ...pusher, device_display_name: 'Tablet', 'org.matrix.msc3881.enabled': false };
      await set(anna, changed);
      const [replaced, ...others] = (await fixture.get('/pushers', anna)).body['pushers'] as Record<
        string,
        unknown
      >[];
      assert.deepEqual([replaced!['device_display_name'], others], ['Tablet', []]);
      assert.equal(replaced!['org.matrix.msc3881.enabled'], false);
      assert.equal((await set(anna, { ...pusher, kind: null })).status, 200);
      assert.deepEqual(await fixture.pushkeysOf(anna), []);
      const unknown = { kind: null, app_id: 'org.example.app', pushkey: 'unknown' };
      assert.equal((await set(anna, unknown)).status, 200);
    });

    it('answers 400 to pushers with missing or invalid fields, gateway URLs and mail addresses', async () => {
      const pusher = fixture.pusher('refused');
      const withUrl = (url: unknown) => ({ ...pusher, data: { url } });
      for (const field of ['lang', 'data', 'app_display_name', 'device_display_name']) {
        assert.deepEqual(await statusAndErrcode(anna, { ...pusher, [field]: undefined }), [
          400,
          'M_MISSING_PARAM',
        ]);
      }
      assert.deepEqual(await statusAndErrcode(anna, { ...pusher, data: {} }), [400, 'M_MISSING_PARAM']);
      const otherPath = withUrl('https://push.example/other');
      assert.deepEqual(await statusAndErrcode(anna, otherPath), [400, 'M_MISSING_PARAM']);
      for (const url of ['push.example', 'ftp://push.example/_matrix/push/v1/notify', 5]) {
        const expected = typeof url === 'number' ? 'M_MISSING_PARAM' : 'M_INVALID_PARAM';
        assert.deepEqual(await statusAndErrcode(anna, withUrl(url)), [400, expected]);
      }
      assert.deepEqual(await statusAndErrcode(anna, { ...pusher, kind: 'sms' }), [400, 'M_INVALID_PARAM']);
      assert.deepEqual(await statusAndErrcode(anna, { ...pusher, app_id: 'a'.repeat(65) }), [
        400,
        'M_BAD_JSON',
      ]);
      const unknownAddress = { ...pusher, kind: 'email', app_id: 'm.email', pushkey: 'anna@example.org' };
      assert.deepEqual(await statusAndErrcode(anna, unknownAddress), [400, 'M_THREEPID_NOT_FOUND']);
      const otherAppId = { ...unknownAddress, app_id: 'org.example.app' };
      assert.deepEqual(await statusAndErrcode(anna, otherAppId), [400, 'M_INVALID_PARAM']);
      assert.deepEqual(await fixture.pushkeysOf(anna), []);
    });

    it('answers 400 M_INVALID_PARAM to http URLs of gateways, except those whose addresses are in ip_range_whitelist', async () => {
      fixture.resolver.hosts.set('public.example', ['93.184.215.14']);
      fixture.resolver.hosts.set('mixed.example', ['127.0.0.1', '93.184.215.14']);
      const withGatewayAt = (origin: string) => ({
        ...fixture.pusher('plain'),
        data: { url: `${origin}/_matrix/push/v1/notify` },
      });
      for (const host of [
        'public.example',
        'mixed.example',
        'unknown.example',
        '93.184.215.14',
        '10.0.0.1',
      ]) {
        const answer = await statusAndErrcode(anna, withGatewayAt(`http://${host}`));
        assert.deepEqual(answer, [400, 'M_INVALID_PARAM'], host);
      }
      for (const origin of ['http://127.0.0.1:5000', 'http://push.example', 'https://public.example'])
        assert.equal((await set(anna, withGatewayAt(origin))).status, 200, origin);
      await set(anna, { ...withGatewayAt(''), kind: null });
    });

    it('removes pushers of other users that have the same app_id and pushkey, unless append is true', async () => {
      const ben = await fixture.server.register('ben');
      await fixture.addPusher(anna, 'shared');
      await fixture.addPusher(ben, 'shared', { append: true });
      assert.deepEqual(
        [await fixture.pushkeysOf(anna), await fixture.pushkeysOf(ben)],
        [['shared'], ['shared']],
      );
      await fixture.addPusher(ben, 'shared');
      assert.deepEqual([await fixture.pushkeysOf(anna), await fixture.pushkeysOf(ben)], [[], ['shared']]);
    });

    it('answers 429 M_LIMIT_EXCEEDED to the 101st request of a user in quick succession', async () => {
      const eve = await fixture.server.register('eve');
      const removal = { kind: null, app_id: 'org.example.app', pushkey: 'none' };
      for (let count = 0; count < 100; count++) assert.equal((await set(eve, removal)).status, 200);
      assert.deepEqual(await statusAndErrcode(eve, removal), [429, 'M_LIMIT_EXCEEDED']);
      assert.equal((await set(anna, removal)).status, 200);
    });

    it('deletes the pushers of a session when the user logs out, deletes the device, or changes the password in another session', async () => {
      const cora = await fixture.server.register('cora');
      const [second, third] = [await login('cora'), await login('cora')];
      await fixture.addPusher(cora, 'first');
      await fixture.addPusher(second, 'second');
      await fixture.addPusher(third, 'third');
      assert.deepEqual(await fixture.pushkeysOf(cora), ['first', 'second', 'third']);
      await fixture.post('/logout', second, {});
      assert.deepEqual(await fixture.pushkeysOf(cora), ['first', 'third']);
      const auth = {
        type: 'm.login.password',
        identifier: { type: 'm.id.user', user: 'cora' },
        password: 'correct horse',
      };
      const changed = await fixture.post('/account/password', third, {
        new_password: 'battery staple',
        auth,
      });
      assert.equal(changed.status, 200, changed.raw);
      assert.deepEqual(await fixture.pushkeysOf(third), ['third']);
      const fourth = await login('cora', 'battery staple');
      await fixture.addPusher(fourth, 'fourth');
      const deletion = { auth: { ...auth, password: 'battery staple' } };
      const path = clientPath(`/devices/${fourth.deviceId}`);
      const deleted = await fixture.server.api('DELETE', path, { token: third.token, body: deletion });
      assert.equal(deleted.status, 200, deleted.raw);
      assert.deepEqual(await fixture.pushkeysOf(third), ['third']);
      await fixture.post('/logout/all', third, {});
      assert.deepEqual(await remainingPushers(cora.userId), []);
    });

    it('deletes the pushers of deactivated accounts, and lists the pushers of a user for administrators', async () => {
      const dora = await fixture.server.register('dora');
      await fixture.addPusher(dora, 'key of Dora');
      const path = `/_synapse/admin/v1/users/${encodeURIComponent(dora.userId)}/pushers`;
      const listing = await fixture.server.api('GET', path, { token: admin.token });
      assert.deepEqual(
        [listing.body['total'], (listing.body['pushers'] as { pushkey: string }[])[0]?.pushkey],
        [1, 'key of Dora'],
      );
      const deactivation = `/_synapse/admin/v1/deactivate/${encodeURIComponent(dora.userId)}`;
      await fixture.server.api('POST', deactivation, { token: admin.token, body: {} });
      assert.deepEqual(await remainingPushers(dora.userId), []);
    });
  });
}
