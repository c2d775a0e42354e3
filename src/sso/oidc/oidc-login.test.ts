import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { serveOnLoopback } from '../../../test/support/network/loopback.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import { oidcAttacks } from '../test/oidc-attacks.ts';
import { type OidcFixture, startOidcFixture } from '../test/oidc-fixture.ts';
import type { OidcServer } from '../test/oidc-server.ts';
import { publicUrl, SsoServer, ssoOptions, tokenIn } from '../test/sso-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('login with OpenID Connect', () => {
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
    let registered: ReturnType<typeof registerAdmin> | undefined;
    const administrator = () => (registered ??= registerAdmin(hearth.server));
    const whoami = async (token: unknown) =>
      (await api('GET', '/_matrix/client/v3/account/whoami', undefined, String(token))).status;

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
      const token = await api('POST', '/_matrix/client/v3/login', {
        type: 'm.login.token',
        token: tokenIn(page),
      });
      assert.equal(token.status, 403, 'a login token is valid once');
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

    it('[option: oidc_providers[].pkce_method] [option: oidc_providers[].client_auth_method] [option: oidc_providers[].additional_authorization_parameters] [option: oidc_providers[].passthrough_authorization_parameters] sends PKCE, secrets and parameters as configured', async () => {
      idp.user = { sub: 'u3', preferred_username: 'carol' };
      await hearth
        .browser()
        .get(hearth.redirectUrl('oidc-main', undefined, { login_hint: 'carol', prompt: 'none' }));
      const [asked] = idp.authorizations;
      assert.deepEqual(
        ['login_hint', 'acr_values', 'prompt', 'code_challenge_method', 'scope'].map((name) =>
          asked!.get(name),
        ),
        ['carol', 'phr', null, 'S256', 'openid profile email'],
      );
      assert.match(idp.tokenRequests[0]!.authorization ?? '', /^Basic /);
      assert.match(idp.tokenRequests[0]!.body, /code_verifier=/);
      await hearth.login('oidc-userinfo');
      assert.equal(idp.authorizations.at(-1)!.get('code_challenge'), null);
      assert.equal(idp.tokenRequests.at(-1)!.authorization, undefined);
    });

    it('[option: oidc_providers[].user_profile_method] reads claims from the userinfo endpoint, which must be about the same user', async () => {
      idp.user = { sub: 'u4', preferred_username: 'dora' };
      idp.replace = (path, real) =>
        path === '/me' ? { ...real, preferred_username: 'from-userinfo' } : undefined;
      assert.equal(
        (await hearth.session(await hearth.login('oidc-userinfo')))['user_id'],
        '@from-userinfo:test',
      );
      idp.replace = (path, real) => (path === '/me' ? { ...real, sub: 'victim' } : undefined);
      const refused = await hearth.login('oidc-userinfo');
      assert.equal(refused.status, 400);
      assert.match(refused.body, /another user/);
    });

    it('refuses a signed userinfo response that names another client as its audience', async () => {
      idp.user = { sub: 'u12', preferred_username: 'signed' };
      const statusFor = async (more: object) => {
        const claims = { iss: idp.issuer, sub: 'u12', preferred_username: 'signed', ...more };
        const token = await idp.sign(claims);
        idp.replace = (path) => (path === '/me' ? token : undefined);
        return (await hearth.login('oidc-userinfo')).status;
      };
      assert.deepEqual(
        [await statusFor({ aud: 'elsewhere' }), await statusFor({ aud: ['hearth'] }), await statusFor({})],
        [502, 303, 303],
      );
    });

    it('[option: oidc_providers[].authorization_endpoint] [option: oidc_providers[].token_endpoint] [option: oidc_providers[].userinfo_endpoint] [option: oidc_providers[].user_mapping_provider.config.subject_claim] logs in without discovery and without openid', async () => {
      idp.user = { sub: 'u5' };
      idp.replace = (path) => (path === '/me' ? { sub: 'u5', email: 'erin@mail.example' } : undefined);
      const page = await hearth.login('oidc-plain');
      assert.equal((await hearth.session(page))['user_id'], '@erin:test');
      const [asked] = idp.authorizations;
      assert.deepEqual(
        [asked!.get('scope'), asked!.get('nonce'), asked!.get('code_challenge_method')],
        ['read_user', null, 'S256'],
      );
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

    it('treats the same subject at two identity providers as two users', async () => {
      idp.user = { sub: 'same', preferred_username: 'henry' };
      other.user = { sub: 'same', preferred_username: 'henry' };
      assert.equal((await hearth.session(await hearth.login('oidc-main')))['user_id'], '@henry:test');
      const second = await hearth.session(await hearth.login('oidc-other'));
      assert.equal(second['user_id'], '@henry1:test', 'a name that is taken gets a number');
    });

    it('[option: oidc_providers[].allow_existing_users] links an existing account to one user of the identity provider, and refuses a second user', async () => {
      const password = await hearth.server.register('ines');
      idp.user = { sub: 'u10', preferred_username: 'ines' };
      assert.equal((await hearth.session(await hearth.login('oidc-existing')))['user_id'], password.userId);
      assert.equal((await hearth.session(await hearth.login('oidc-existing')))['user_id'], password.userId);
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

    it('binds no mail address that another account has, or that the identity provider has not verified', async () => {
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

    it('[option: oidc_providers[].user_mapping_provider.config.confirm_localpart] asks new users for a user name, checks it, and uses only the name that they chose', async () => {
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

    it('refuses a chosen user name with 403 when the identity provider decides the name, also while the user reads the terms', async () => {
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

    it('[option: oidc_providers[].backchannel_logout_enabled] logs out the devices of the user that a logout token names, and only with a valid token', async () => {
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

    it('leaves a device that has logged in again with a password logged in when the identity provider requests a logout', async () => {
      idp.user = { sub: 'b2', preferred_username: 'wilma' };
      await hearth.session(await hearth.login('oidc-main'));
      const password = 'correct horse';
      await (await administrator()).ask('PUT', '/_synapse/admin/v2/users/@wilma:test', { password });
      const device_id = 'SHARED';
      await hearth.session(await hearth.login('oidc-main'), { device_id });
      const { access_token: other } = await hearth.session(await hearth.login('oidc-main'));
      const login = { type: 'm.login.password', user: 'wilma', password, device_id };
      const { access_token } = (await api('POST', '/_matrix/client/v3/login', login)).body;
      const logout_token = await idp.logoutToken('hearth', { sub: 'b2' });
      const path = `${publicUrl}/_synapse/client/oidc/backchannel_logout`;
      assert.equal((await hearth.browser().post(path, { logout_token })).status, 200);
      assert.deepEqual([await whoami(access_token), await whoami(other)], [200, 401]);
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

    it('refuses logins of deactivated and locked users through an identity provider', async () => {
      const admin = await administrator();
      for (const [name, change, text] of [
        ['olga', { deactivated: true }, /Account deactivated/],
        ['paul', { locked: true }, /locked/],
      ] as const) {
        idp.user = { sub: name, preferred_username: name };
        const page = await hearth.login('oidc-main');
        await admin.ask('PUT', `/_synapse/admin/v2/users/@${name}:test`, change);
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

    oidcAttacks(() => fixture);
  });
});
