import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { serveOnLoopback } from '../../../test/support/network/loopback.ts';
import { type OidcFixture, startOidcFixture } from '../test/oidc-fixture.ts';
import type { OidcServer } from '../test/oidc-server.ts';
import { publicUrl, type SsoServer, tokenIn } from '../test/sso-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('login with OpenID Connect', () => {
    let fixture: OidcFixture;
    let idp: OidcServer;
    let hearth: SsoServer;
    before(async () => {
      fixture = await startOidcFixture(open.kind);
      ({ idp, hearth } = fixture);
    });
    after(() => fixture.stop());
    beforeEach(() => fixture.reset());
    const api = (method: string, path: string, body?: object, token?: string) =>
      hearth.server.api(method, path, { body, ...(token !== undefined && { token }) } as never);

    it('[option: oidc_providers[].idp_id] [option: oidc_providers[].idp_name] [option: oidc_providers[].idp_icon] [option: oidc_providers[].idp_brand] lists providers in GET /login', async () => {
      const { body } = await api('GET', '/_matrix/client/v3/login');
      const flows = body['flows'] as { type: string; identity_providers?: object[] }[];
      const sso = flows.find(({ type }) => type === 'm.login.sso')!;
      assert.deepEqual(sso.identity_providers!.slice(0, 2), [
        { id: 'oidc-main', name: 'Provider main', icon: 'mxc://test/icon', brand: 'github' },
        { id: 'oidc-other', name: 'Provider other' },
      ]);
      assert.ok(flows.some(({ type }) => type === 'm.login.token'));
    });

    it('shows a page to choose an identity provider when the client names none, and redirects to the chosen one', async () => {
      const browser = hearth.browser();
      const picker = await browser.get(hearth.redirectUrl(undefined, undefined, { login_hint: 'x' }));
      assert.equal(picker.status, 200);
      // Browsers would block a form that leads to another host.
      assert.doesNotMatch(picker.body, /<form/);
      const link = /href="([^"]*idp=oidc-main)"[^>]*>.*?Continue with Provider main/s.exec(picker.body)?.[1];
      idp.user = { sub: 'picker', preferred_username: 'picker' };
      const page = await browser.get(publicUrl + link?.replaceAll('&amp;', '&'));
      assert.equal((await hearth.session(page))['user_id'], '@picker:test');
      assert.equal(idp.authorizations.at(-1)?.get('login_hint'), 'x');
    });

    it('[option: oidc_providers[].discover] [option: oidc_providers[].issuer] [option: oidc_providers[].client_id] [option: oidc_providers[].client_secret] [option: oidc_providers[].scopes] [option: oidc_providers[].user_mapping_provider.config.localpart_template] [option: oidc_providers[].user_mapping_provider.config.display_name_template] [option: oidc_providers[].user_mapping_provider.config.email_template] [option: oidc_providers[].user_mapping_provider.config.extra_attributes] [option: oidc_providers[].enable_registration] [option: sso.client_whitelist] creates an account at the first login of a user and logs in to it at the second', async () => {
      idp.user = {
        sub: 'u1',
        preferred_username: 'Alice Ä',
        name: 'Alice <3',
        email: 'Alice@Mail.example',
        email_verified: true,
        locale: 'de',
      };
      const page = await hearth.login('oidc-main');
      assert.equal(page.status, 303);
      const location = new URL(page.headers.location!);
      assert.equal(location.origin + location.pathname, 'https://app.client.example/');
      assert.equal(location.searchParams.get('room'), '1');
      assert.equal(location.hash, '#/home');
      assert.equal(page.headers['referrer-policy'], 'no-referrer');
      const session = await hearth.session(page);
      assert.equal(session['user_id'], '@alice=20=c3=a4:test');
      assert.equal(session['locale'], 'de');
      assert.equal(await hearth.displayName(String(session['user_id'])), 'Alice <3');
      const ids = await api(
        'GET',
        '/_matrix/client/v3/account/3pid',
        undefined,
        String(session['access_token']),
      );
      assert.deepEqual(
        (ids.body['threepids'] as { address: string }[]).map(({ address }) => address),
        ['alice@mail.example'],
      );
      const secondUse = await api('POST', '/_matrix/client/v3/login', {
        type: 'm.login.token',
        token: tokenIn(page),
      });
      assert.equal(secondUse.status, 403, 'a login token is valid once');
      idp.user = { sub: 'u1', preferred_username: 'renamed', name: 'Alice' };
      assert.equal((await hearth.session(await hearth.login('oidc-main')))['user_id'], session['user_id']);
    });

    it('logs in at an identity provider in a private network, and fetches no picture from there', async () => {
      let requests = 0;
      const images = await serveOnLoopback((_request, response) => {
        requests++;
        response.end();
      });
      try {
        const picture = `http://127.0.0.1:${images.port}/me.png`;
        idp.user = { sub: 'pictured', preferred_username: 'pictured', picture };
        const page = await hearth.login('oidc-pictures');
        assert.equal((await hearth.session(page))['user_id'], '@pictured:test');
        const profile = await api('GET', '/_matrix/client/v3/profile/@pictured:test');
        assert.deepEqual([profile.body['avatar_url'], requests], [undefined, 0]);
      } finally {
        await images.close();
      }
    });

    it('[option: sso.update_profile_information] updates the display name at a later login', async () => {
      idp.user = { sub: 'u2', preferred_username: 'bob', name: 'Bob' };
      await hearth.login('oidc-main');
      assert.equal(await hearth.displayName('@bob:test'), 'Bob');
      idp.user = { ...idp.user, name: 'Robert' };
      await hearth.login('oidc-main');
      assert.equal(await hearth.displayName('@bob:test'), 'Robert');
    });

    it('[option: oidc_providers[].attribute_requirements[].attribute] [option: oidc_providers[].attribute_requirements[].value] [option: oidc_providers[].attribute_requirements[].one_of] lets in only users who meet all requirements', async () => {
      idp.user = { sub: 'u6', preferred_username: 'frank', groups: ['users', 'staff'], locale: 'de' };
      assert.equal((await hearth.login('oidc-groups')).status, 303);
      idp.user = { sub: 'u7', preferred_username: 'gina', groups: ['users'], locale: 'de' };
      assert.equal((await hearth.login('oidc-groups')).status, 403);
      idp.user = { sub: 'u8', groups: 'admins', locale: 'de' };
      assert.equal((await hearth.login('oidc-groups')).status, 403);
      idp.user = { sub: 'u9', preferred_username: 'hugo', groups: 'admins', locale: 'en' };
      assert.equal((await hearth.login('oidc-groups')).status, 403);
    });

    it('[option: oidc_providers[].skip_verification] refuses a provider without TLS unless verification is off', async () => {
      const page = await hearth.login('oidc-strict');
      assert.equal(page.status, 502);
      assert.match(page.body, /cannot be used at the moment/);
      assert.equal(idp.authorizations.length, 0);
    });

    it('accepts logins after the identity provider has changed its keys', async () => {
      idp.user = { sub: 'k1', preferred_username: 'nina' };
      assert.equal((await hearth.login('oidc-main')).status, 303);
      await idp.rotateKeys();
      assert.equal((await hearth.login('oidc-main')).status, 303);
    });

    it('shows the escaped reason when the user or the identity provider refuses the login', async () => {
      const page = await hearth.login('oidc-main');
      assert.equal(page.status, 400);
      assert.match(page.body, /The user &lt;b&gt;refused&lt;\/b&gt;/);
      assert.match(page.body, /access_denied/);
    });
  });
});
