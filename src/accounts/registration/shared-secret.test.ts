import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { testAccountOptions } from '../../../test/support/servers/accounts-server.ts';
import { registrationMac } from './shared-secret.ts';
import { RegistrationServer } from './test/registration-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  const server = new RegistrationServer(open);

  describe('registration by shared secret', () => {
    const path = '/_synapse/admin/v1/register';
    const request = async (more: Record<string, unknown> = {}, secret = 'shared secret') => {
      const { nonce } = (await server.accounts.call('GET', path)).body as { nonce: string };
      const account = { nonce, username: 'admin', password: 'password', admin: true, ...more };
      return { ...account, mac: registrationMac(account, secret) };
    };
    const send = (body: unknown) => server.accounts.call('POST', path, { body });

    it('creates users and administrators by a shared secret although registration is off', async () => {
      await server.start({ options: { enable_registration: false } });
      const { status, body } = await send(await request());
      assert.equal(status, 200, JSON.stringify(body));
      assert.deepEqual(Object.keys(body).sort(), ['access_token', 'device_id', 'home_server', 'user_id']);
      assert.equal(await server.accounts.slice.accounts.isAdmin('@admin:test'), true);
      await send(await request({ username: 'bot', admin: false, user_type: 'bot' }));
      const bot = await server.accounts.slice.accounts.getUser('@bot:test');
      assert.deepEqual([bot?.isAdmin, bot?.userType], [false, 'bot']);
    });

    it('opens a session on a device that has the requested id and name, and no session when inhibit_login is true', async () => {
      await server.start();
      const { body } = await send({
        ...(await request({ username: 'anna' })),
        device_id: 'CONSOLE',
        initial_device_display_name: 'Console',
      });
      assert.equal(body['device_id'], 'CONSOLE');
      const token = body['access_token'] as string;
      const device = await server.accounts.call('GET', '/_matrix/client/v3/devices/CONSOLE', { token });
      assert.equal(device.body['display_name'], 'Console');
      const other = await send({ ...(await request({ username: 'ben' })), inhibit_login: true });
      assert.deepEqual([other.status, other.body], [200, { user_id: '@ben:test', home_server: 'test' }]);
    });

    it('accepts a password that violates the password policy, which is for passwords that users choose', async () => {
      const policy = { ...testAccountOptions.password_config.policy, enabled: true, minimum_length: 20 };
      await server.start({
        options: { password_config: { ...testAccountOptions.password_config, policy } },
      });
      assert.equal((await send(await request())).status, 200);
      const { status, body } = await send(await request({ username: 'other', password: 'a'.repeat(513) }));
      assert.deepEqual([status, body['errcode']], [400, 'M_INVALID_PARAM']);
    });

    it('registrationMac computes the same MAC as openssl', () => {
      const request = { nonce: 'thisisanonce', username: 'pepper_roni', password: 'pizza', admin: true };
      // printf 'thisisanonce\0pepper_roni\0pizza\0admin' | openssl sha1 -hmac shared_secret
      assert.equal(registrationMac(request, 'shared_secret'), '48715842ad67d5dc9a9ee938a3bda4fcfae8d7c7');
    });

    it('refuses wrong MACs, used, expired and unknown nonces, and unknown user types', async () => {
      await server.start();
      assert.equal((await send(await request({}, 'guess'))).status, 403);
      assert.equal((await send({ ...(await request()), mac: '' })).status, 403);
      assert.equal((await send({ ...(await request()), admin: false })).status, 403);
      const used = await request();
      await send(used);
      assert.deepEqual((await send(used)).body['error'], 'Unknown nonce');
      const old = await request({ username: 'late' });
      server.accounts.clock.advance(61_000);
      assert.deepEqual((await send(old)).body['error'], 'Unknown nonce');
      assert.equal((await send(await request({ username: 'other', user_type: 'wizard' }))).status, 400);
    });

    it('accepts a nonce after many other nonces were requested', async () => {
      await server.start();
      const early = await request();
      for (let index = 0; index < 1_100; index++) server.accounts.slice.sharedSecretRegistration.nonce();
      assert.equal((await send(early)).status, 200);
    });

    it('refuses nonces that are altered or were issued before a restart', async () => {
      await server.start();
      const { nonce } = (await server.accounts.call('GET', path)).body as { nonce: string };
      const [random, expiry, mac] = nonce.split('.');
      for (const altered of [`${random}.${Number(expiry) + 60_000}.${mac}`, `x${nonce}`, `${nonce}A`, '']) {
        const account = { nonce: altered, username: 'admin', password: 'password' };
        const answer = await send({ ...account, mac: registrationMac(account, 'shared secret') });
        assert.deepEqual([answer.status, answer.body['error']], [400, 'Unknown nonce'], altered);
      }
      await server.accounts.stop();
      await server.start();
      const account = { nonce, username: 'admin', password: 'password' };
      const answer = await send({ ...account, mac: registrationMac(account, 'shared secret') });
      assert.equal(answer.body['error'], 'Unknown nonce');
    });

    it('responds 400 without the option registration_shared_secret', async () => {
      await server.start({ options: { registration_shared_secret: null } });
      assert.equal((await server.accounts.call('GET', path)).status, 400);
    });
  });
});
