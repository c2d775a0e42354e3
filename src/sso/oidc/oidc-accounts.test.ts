import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import { type OidcFixture, startOidcFixture } from '../test/oidc-fixture.ts';
import type { OidcServer } from '../test/oidc-server.ts';
import { type SsoServer, tokenIn } from '../test/sso-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('accounts of users of OpenID Connect', () => {
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

    it('treats the same subject at two identity providers as two users', async () => {
      idp.user = { sub: 'same', preferred_username: 'henry' };
      other.user = { sub: 'same', preferred_username: 'henry' };
      assert.equal((await hearth.session(await hearth.login('oidc-main')))['user_id'], '@henry:test');
      const second = await hearth.session(await hearth.login('oidc-other'));
      assert.equal(second['user_id'], '@henry1:test', 'a number is appended to a name that is taken');
    });

    it('[option: oidc_providers[].allow_existing_users] links an existing account to one user of the identity provider, and refuses a second user', async () => {
      const account = await hearth.server.register('ines');
      idp.user = { sub: 'u10', preferred_username: 'ines' };
      assert.equal((await hearth.session(await hearth.login('oidc-existing')))['user_id'], account.userId);
      assert.equal((await hearth.session(await hearth.login('oidc-existing')))['user_id'], account.userId);
      idp.user = { sub: 'thief', preferred_username: 'ines' };
      const refused = await hearth.login('oidc-existing');
      assert.equal(refused.status, 403);
      assert.match(refused.body, /belongs to another user/);
    });

    it('refuses new users of an identity provider with enable_registration: false', async () => {
      idp.user = { sub: 'u11', preferred_username: 'judy' };
      const page = await hearth.login('oidc-closed');
      assert.equal(page.status, 403);
      assert.match(page.body, /no account on this server/);
      assert.equal((await api('GET', '/_matrix/client/v3/profile/@judy:test')).status, 404);
    });

    it('binds the mail address of a user, unless another account has it or the identity provider reports it as not verified', async () => {
      idp.user = {
        sub: 'm1',
        preferred_username: 'owner',
        email: 'owner@mail.example',
        email_verified: true,
      };
      await hearth.login('oidc-main');
      const addressesOf = async (user: Record<string, unknown>) => {
        idp.user = user as never;
        const session = await hearth.session(await hearth.login('oidc-main'));
        const path = '/_matrix/client/v3/account/3pid';
        const { body } = await api('GET', path, undefined, String(session['access_token']));
        return [session['user_id'], (body['threepids'] as object[]).length];
      };
      const taken = {
        sub: 'm2',
        preferred_username: 'taker',
        email: 'owner@mail.example',
        email_verified: true,
      };
      assert.deepEqual(await addressesOf(taken), ['@taker:test', 0]);
      const unverified = {
        sub: 'm3',
        preferred_username: 'liar',
        email: 'someone@mail.example',
        email_verified: false,
      };
      assert.deepEqual(await addressesOf(unverified), ['@liar:test', 0]);
      const unverifiedText = {
        sub: 'm4',
        preferred_username: 'cognito',
        email: 'victim@mail.example',
        email_verified: 'false',
      };
      assert.deepEqual(await addressesOf(unverifiedText), ['@cognito:test', 0]);
      const withoutClaim = { sub: 'm5', preferred_username: 'unclaimed', email: 'unclaimed@mail.example' };
      assert.deepEqual(await addressesOf(withoutClaim), ['@unclaimed:test', 1]);
    });

    it('refuses logins of deactivated and locked users through an identity provider', async () => {
      const admin = await registerAdmin(hearth.server);
      for (const [name, change, text] of [
        ['olga', { deactivated: true }, /Account deactivated/],
        ['paul', { locked: true }, /locked/],
      ] as const) {
        idp.user = { sub: name, preferred_username: name };
        const page = await hearth.login('oidc-main');
        await admin.request('PUT', `/_synapse/admin/v2/users/@${name}:test`, change);
        const redeemed = await api('POST', '/_matrix/client/v3/login', {
          type: 'm.login.token',
          token: tokenIn(page),
        });
        assert.ok(redeemed.status === 403 || redeemed.status === 401, `${name} ${redeemed.raw}`);
        const refused = await hearth.login('oidc-main');
        assert.equal(refused.status, 403);
        assert.match(refused.body, text);
      }
    });
  });
});
