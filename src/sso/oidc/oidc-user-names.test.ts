import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { type OidcFixture, startOidcFixture } from '../test/oidc-fixture.ts';
import type { OidcServer } from '../test/oidc-server.ts';
import { SsoServer, ssoOptions } from '../test/sso-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('user names of new users of OpenID Connect', () => {
    let fixture: OidcFixture;
    let idp: OidcServer;
    let hearth: SsoServer;
    before(async () => {
      fixture = await startOidcFixture(open.kind);
      ({ idp, hearth } = fixture);
    });
    after(() => fixture.stop());
    beforeEach(() => fixture.reset());

    it('[option: oidc_providers[].user_mapping_provider.config.confirm_localpart] asks new users for a user name, checks it, and uses only the name that they chose', async () => {
      await hearth.server.register('bob');
      idp.user = { sub: 'c1', preferred_username: 'bob', name: 'Chosen', email: 'chosen@mail.example' };
      const browser = hearth.browser();
      const form = await hearth.login('oidc-confirm', browser);
      assert.equal(form.status, 200);
      assert.match(form.body, /name="username" value="bob"/);
      const policy = String(form.headers['content-security-policy']);
      assert.ok(policy.includes("form-action 'self' https://app.client.example;"), policy);
      const taken = await browser.post(form.url, { username: 'bob' });
      assert.equal(taken.status, 400);
      assert.match(taken.body, /role="alert">This user name is taken/);
      const check = new URL(form.url.replace('account_details', 'check'));
      check.searchParams.set('username', 'karl');
      assert.deepEqual(JSON.parse((await browser.get(check.href)).body), { available: true });
      const cross = await browser.post(form.url, { username: 'karl' }, { 'sec-fetch-site': 'cross-site' });
      assert.equal(cross.status, 403, 'a form of another site');
      assert.equal(
        (await hearth.browser().post(form.url, { username: 'karl' })).status,
        400,
        'another browser',
      );
      const done = await browser.post(form.url, { username: 'karl' });
      assert.equal((await hearth.session(done))['user_id'], '@karl:test');
      assert.equal((await browser.post(form.url, { username: 'karl2' })).status, 400, 'the page is used up');
    });

    it('refuses a chosen user name with 403 while the user reads the terms, if the identity provider decides the name', async () => {
      const consenting = await SsoServer.start(open.kind, {
        accounts: { user_consent: { version: '1', require_at_registration: true } },
        sso: ssoOptions({
          oidc_providers: [
            {
              idp_id: 'main',
              issuer: idp.issuer,
              client_id: 'hearth',
              client_secret: 'a secret',
              skip_verification: true,
              user_mapping_provider: { config: { localpart_template: '{{ user.preferred_username }}' } },
            },
          ],
        } as never),
      } as never);
      try {
        idp.user = { sub: 't1', preferred_username: 'mapped' };
        const browser = consenting.browser();
        const terms = await consenting.login('oidc-main', browser);
        assert.match(terms.url, /new_user_consent\?session=/);
        const details = terms.url.replace('new_user_consent', 'pick_username/account_details');
        const check = `${details.replace('account_details', 'check')}&username=colleague`;
        assert.equal((await browser.get(details)).status, 403);
        assert.equal((await browser.get(check)).status, 403);
        assert.equal((await browser.post(details, { username: 'colleague' })).status, 403);
        const done = await browser.post(terms.url, { accepted_version: '1' });
        assert.equal((await consenting.session(done))['user_id'], '@mapped:test');
      } finally {
        await consenting.stop();
      }
    });

    it('asks new users for a user name when no template results in one', async () => {
      idp.user = { sub: 'c2', name: 'Lena', email: 'lena@mail.example' };
      const browser = hearth.browser();
      const form = await hearth.login('oidc-choose', browser);
      assert.match(form.body, /name="username" value=""/);
      const done = await browser.post(form.url, { username: 'lena', use_display_name: 'true' });
      assert.equal((await hearth.session(done))['user_id'], '@lena:test');
      assert.equal(await hearth.displayName('@lena:test'), 'Lena');
    });
  });
});
