import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { CompletedRegistration } from '../account-checks.ts';
import { dummy, RegistrationServer } from './test/registration-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  const server = new RegistrationServer(open);

  describe('guests', () => {
    it('registers guests without credentials, under a numeric name, and restricts them to endpoints for guests', async () => {
      await server.start();
      const { body } = await server.register({ device_id: 'MINE', username: 'alice' }, '?kind=guest');
      assert.match(body['user_id'] as string, /^@\d+:test$/);
      assert.notEqual(body['device_id'], 'MINE');
      const token = body['access_token'] as string;
      assert.equal((await server.accounts.call('GET', '/account/whoami', { token })).body['is_guest'], true);
      assert.equal((await server.accounts.call('GET', '/devices', { token })).status, 200);
      const denied = await server.accounts.call('POST', '/account/deactivate', { token, body: {} });
      assert.equal(denied.body['errcode'], 'M_GUEST_ACCESS_FORBIDDEN');
    });

    it('upgrades a guest to a full user of the same name by guest_access_token', async () => {
      await server.start();
      const guest = (await server.register({}, '?kind=guest')).body;
      const otherGuest = (await server.register({}, '?kind=guest')).body;
      const user = await server.accounts.register('alice');
      const username = /^@(\d+):/.exec(guest['user_id'] as string)?.[1] ?? '';
      const parameters = { username, password: 'password', device_id: 'PHONE', auth: dummy };
      const token = guest['access_token'] as string;
      await server.refuses(400, 'M_INVALID_USERNAME', parameters);
      for (const wrong of ['unknown', otherGuest['access_token'], user.token]) {
        await server.refuses(403, 'M_FORBIDDEN', { ...parameters, guest_access_token: wrong });
      }
      await server.refuses(400, 'M_BAD_JSON', { ...parameters, guest_access_token: 5 });
      const { username: _, ...nameless } = parameters;
      await server.refuses(400, 'M_MISSING_PARAM', { ...nameless, guest_access_token: token });
      const { status, body } = await server.register({ ...parameters, guest_access_token: token });
      assert.deepEqual([status, body['user_id'], body['device_id']], [200, guest['user_id'], 'PHONE']);
      for (const held of [token, body['access_token'] as string]) {
        const whoami = await server.accounts.call('GET', '/account/whoami', { token: held });
        assert.deepEqual([whoami.body['user_id'], whoami.body['is_guest']], [guest['user_id'], false]);
      }
      await server.accounts.login(username);
      await server.refuses(403, 'M_FORBIDDEN', { ...parameters, guest_access_token: token });
    });

    it('runs the check of registrations again, for a full user, when a guest is upgraded', async () => {
      const checked: [string, boolean][] = [];
      const registration = async ({ userId, isGuest }: CompletedRegistration) => {
        checked.push([userId, isGuest]);
        if (!isGuest) throw new MatrixError(403, 'M_RESOURCE_LIMIT_EXCEEDED', 'The limit is reached');
        return undefined;
      };
      await server.start({ extensions: () => ({ checks: { registration } }) });
      const { user_id, access_token } = (await server.register({}, '?kind=guest')).body;
      const username = String(user_id).slice(1, -':test'.length);
      const upgrade = { username, password: 'password', guest_access_token: access_token, auth: dummy };
      await server.refuses(403, 'M_RESOURCE_LIMIT_EXCEEDED', upgrade);
      assert.deepEqual(checked, [
        [user_id, true],
        [user_id, false],
      ]);
      const token = access_token as string;
      assert.equal((await server.accounts.call('GET', '/account/whoami', { token })).body['is_guest'], true);
    });

    it('shadow-bans a guest in the transaction of the upgrade when the check of registrations returns shadow-ban', async () => {
      const registration = async ({ isGuest }: CompletedRegistration) =>
        isGuest ? undefined : ('shadow-ban' as const);
      let isFailing = true;
      const upgraded = async () => {
        if (isFailing) throw new MatrixError(500, 'M_UNKNOWN', 'The upgrade fails');
      };
      await server.start({
        extensions: () => ({ checks: { registration }, lifecycleHooks: [{ upgraded }] }),
      });
      const { user_id, access_token } = (await server.register({}, '?kind=guest')).body;
      const username = String(user_id).slice(1, -':test'.length);
      const upgrade = { username, password: 'password', guest_access_token: access_token, auth: dummy };
      await server.refuses(500, 'M_UNKNOWN', upgrade);
      const { accounts } = server.accounts.slice;
      const flags = async () => {
        const user = await accounts.getUser(String(user_id));
        return [user?.isGuest, user?.isShadowBanned];
      };
      assert.deepEqual(await flags(), [true, false]);
      isFailing = false;
      assert.equal((await server.register(upgrade)).status, 200);
      assert.deepEqual(await flags(), [false, true]);
    });

    it('refuses to register guests with 403 M_FORBIDDEN when guest access is off', async () => {
      await server.start({ options: { allow_guest_access: false } });
      await server.refuses(403, 'M_FORBIDDEN', {}, '?kind=guest');
    });
  });
});
