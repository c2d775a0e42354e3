import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import { type OidcFixture, startOidcFixture } from '../test/oidc-fixture.ts';
import type { OidcServer } from '../test/oidc-server.ts';
import { publicUrl, type SsoServer } from '../test/sso-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('logout by a provider of OpenID Connect', () => {
    let fixture: OidcFixture;
    let idp: OidcServer;
    let other: OidcServer;
    let hearth: SsoServer;
    before(async () => {
      fixture = await startOidcFixture(open.kind);
      ({ idp, other, hearth } = fixture);
    });
    after(() => fixture.stop());
    beforeEach(() => fixture.reset());
    const api = (method: string, path: string, body?: object, token?: string) =>
      hearth.server.api(method, path, { body, ...(token !== undefined && { token }) } as never);
    const whoami = async (token: unknown) =>
      (await api('GET', '/_matrix/client/v3/account/whoami', undefined, String(token))).status;

    it('[option: oidc_providers[].backchannel_logout_enabled] logs out the devices of the user that a valid logout token names, and rejects invalid logout tokens', async () => {
      idp.user = { sub: 'b1', preferred_username: 'mallory' };
      const session = await hearth.session(await hearth.login('oidc-main'));
      const again = await hearth.session(await hearth.login('oidc-main'));
      const path = `${publicUrl}/_synapse/client/oidc/backchannel_logout`;
      const logout = async (token: string) =>
        (await hearth.browser().post(path, { logout_token: token })).status;
      assert.equal(await logout(await other.logoutToken('hearth', { sub: 'b1' })), 400, 'another provider');
      assert.equal(await logout(await idp.logoutToken('hearth', { sub: 'b1', nonce: 'x' })), 400);
      assert.equal(await logout(await idp.logoutToken('hearth', { sub: 'b1', events: {} })), 400);
      assert.equal(await logout(await idp.logoutToken('elsewhere', { sub: 'b1' })), 400);
      assert.equal(await whoami(session['access_token']), 200);
      assert.equal(await logout(await idp.logoutToken('hearth', { sub: 'b1' })), 200);
      assert.deepEqual(
        [await whoami(session['access_token']), await whoami(again['access_token'])],
        [401, 401],
      );
    });

    it('does not log out a device on which the user has logged in again by password when the identity provider requests a logout', async () => {
      idp.user = { sub: 'b2', preferred_username: 'wilma' };
      await hearth.session(await hearth.login('oidc-main'));
      const password = 'correct horse';
      const admin = await registerAdmin(hearth.server);
      await admin.request('PUT', '/_synapse/admin/v2/users/@wilma:test', { password });
      const device_id = 'SHARED';
      await hearth.session(await hearth.login('oidc-main'), { device_id });
      const { access_token: otherToken } = await hearth.session(await hearth.login('oidc-main'));
      const login = { type: 'm.login.password', user: 'wilma', password, device_id };
      const { access_token } = (await api('POST', '/_matrix/client/v3/login', login)).body;
      const logout_token = await idp.logoutToken('hearth', { sub: 'b2' });
      const path = `${publicUrl}/_synapse/client/oidc/backchannel_logout`;
      assert.equal((await hearth.browser().post(path, { logout_token })).status, 200);
      assert.deepEqual([await whoami(access_token), await whoami(otherToken)], [200, 401]);
    });
  });
});
