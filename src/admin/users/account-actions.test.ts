import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('actions on accounts by the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    before(async () => {
      server = await startTestServer({ database: kind });
      admin = await Administration.open(server);
    });
    after(() => server.stop());

    let users = 0;
    const newUser = () => TestClient.register(server, `user${users++}`);
    const loginStatus = async (user: string, password: string) => {
      const body = { type: 'm.login.password', identifier: { type: 'm.id.user', user }, password };
      const answer = await server.api('POST', '/_matrix/client/v3/login', { body });
      return [answer.status, answer.body['errcode']];
    };
    const whoami = async (token: string) =>
      (await server.api('GET', '/_matrix/client/v3/account/whoami', { token })).status;

    it('POST /reset_password sets a password and ends all sessions unless logout_devices is false', async () => {
      const user = await newUser();
      const path = `/v1/reset_password/${user.id}`;
      assert.deepEqual(await admin.do('POST', path, { new_password: 'one', logout_devices: false }), {});
      assert.equal(await whoami(user.token), 200);
      await admin.do('POST', path, { new_password: 'two' });
      assert.equal(await whoami(user.token), 401);
      assert.deepEqual(await loginStatus(user.id, 'two'), [200, undefined]);
      assert.deepEqual(await admin.refused('POST', path, {}), [400, 'M_BAD_JSON']);
      const unknown = await admin.refused('POST', '/v1/reset_password/@nobody:test', { new_password: 'x' });
      assert.deepEqual(unknown, [404, 'M_NOT_FOUND']);
    });

    it('GET and PUT /users/{userId}/admin show and change whether a user is an administrator, and refuse to remove the rights of the requester', async () => {
      const user = await newUser();
      const path = `/v1/users/${user.id}/admin`;
      assert.deepEqual(await admin.do('GET', path), { admin: false });
      assert.equal(
        (await user.request('GET', '/_synapse/admin/v1/registration_tokens', undefined)).status,
        403,
      );
      await admin.do('PUT', path, { admin: true });
      assert.deepEqual(await admin.do('GET', path), { admin: true });
      assert.equal(
        (await user.request('GET', '/_synapse/admin/v1/registration_tokens', undefined)).status,
        200,
      );
      await admin.do('PUT', path, { admin: false });
      assert.equal(
        (await user.request('GET', '/_synapse/admin/v1/registration_tokens', undefined)).status,
        403,
      );
      assert.deepEqual(await admin.refused('PUT', '/v1/users/@admin:test/admin', { admin: false }), [
        400,
        'M_INVALID_PARAM',
      ]);
    });

    it('PUT /suspend suspends an account, and ends the suspension', async () => {
      const user = await newUser();
      const room = await user.createRoom();
      const send = async () =>
        (await user.call('PUT', `/rooms/${enc(room)}/send/m.room.message/${users++}`, { body: 'x' })).status;
      await admin.do('PUT', `/v1/suspend/${user.id}`, { suspend: true });
      assert.equal(await send(), 403);
      assert.equal((await admin.do('GET', `/v2/users/${user.id}`))['suspended'], true);
      await admin.do('PUT', `/v1/suspend/${user.id}`, { suspend: false });
      assert.equal(await send(), 200);
    });

    it('POST /users/{userId}/login returns a token without a device, which /logout/all of the user does not end', async () => {
      const user = await newUser();
      const path = `/v1/users/${user.id}/login`;
      const token = String((await admin.do('POST', path, {}))['access_token']);
      const me = await server.api('GET', '/_matrix/client/v3/account/whoami', { token });
      assert.deepEqual([me.body['user_id'], me.body['device_id']], [user.id, undefined]);
      assert.equal(((await user.do('GET', '/devices'))['devices'] as unknown[]).length, 1);
      await user.do('POST', '/logout/all', {});
      assert.equal(await whoami(token), 200);
      assert.equal((await server.api('POST', '/_matrix/client/v3/logout', { token, body: {} })).status, 200);
      assert.equal(await whoami(token), 401);
      const expired = await admin.do('POST', path, { valid_until_ms: 1 });
      assert.equal(await whoami(String(expired['access_token'])), 401);
      assert.deepEqual(await admin.refused('POST', '/v1/users/@admin:test/login', {}), [
        400,
        'M_INVALID_PARAM',
      ]);
    });

    it('POST /logout/all of an administrator ends the sessions that the administrator opened as other users', async () => {
      const user = await newUser();
      const other = await newUser();
      await admin.do('PUT', `/v1/users/${other.id}/admin`, { admin: true });
      const path = `/_synapse/admin/v1/users/${user.id}/login`;
      const token = String((await other.request('POST', path, {})).body['access_token']);
      const kept = String((await admin.do('POST', `/v1/users/${user.id}/login`, {}))['access_token']);
      assert.equal(await whoami(token), 200);
      await other.do('POST', '/logout/all', {});
      assert.deepEqual([await whoami(token), await whoami(kept), await whoami(user.token)], [401, 200, 200]);
      await admin.do('POST', `/v1/deactivate/${user.id}`, {});
      assert.equal(await whoami(kept), 401);
    });
  });
});
