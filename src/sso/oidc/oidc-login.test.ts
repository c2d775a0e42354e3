import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { serveOnLoopback } from '../../../test/support/network/loopback.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import { OidcServer } from '../test/oidc-server.ts';
import { publicUrl, SsoServer, ssoOptions, tokenIn } from '../test/sso-server.ts';

const callback = `${publicUrl}/_synapse/client/oidc/callback`;
const client = (more: object = {}) => ({
  client_id: 'hearth',
  client_secret: 'a secret',
  redirect_uris: [callback],
  backchannel_logout_uri: `${publicUrl}/_synapse/client/oidc/backchannel_logout`,
  ...more,
});

forEachDatabase((open) => {
  describe('login with OpenID Connect', () => {
    let idp: OidcServer;
    let other: OidcServer;
    let hearth: SsoServer;
    before(async () => {
      idp = await OidcServer.start(() => [client()]);
      other = await OidcServer.start(() => [client()]);
      const provider = (idp_id: string, { issuer }: OidcServer, more: object = {}) => ({
        idp_id,
        idp_name: `Provider ${idp_id}`,
        issuer,
        client_id: 'hearth',
        client_secret: 'a secret',
        skip_verification: true,
        user_mapping_provider: { config: { localpart_template: '{{ user.preferred_username }}' } },
        ...more,
      });
      const mapping = (config: object) => ({ user_mapping_provider: { config } });
      hearth = await SsoServer.start(open.kind, {
        sso: ssoOptions({
          sso: { client_whitelist: ['https://app.client.example/'], update_profile_information: true },
          oidc_providers: [
            provider('main', idp, {
              idp_icon: 'mxc://test/icon',
              idp_brand: 'github',
              scopes: ['openid', 'profile', 'email'],
              backchannel_logout_enabled: true,
              passthrough_authorization_parameters: ['login_hint'],
              additional_authorization_parameters: { acr_values: 'phr' },
              user_mapping_provider: {
                config: {
                  localpart_template: '{{ user.preferred_username }}',
                  display_name_template: '{{ user.name }}',
                  email_template: '{{ user.email }}',
                  extra_attributes: { locale: '{{ user.locale or "en" }}' },
                },
              },
            }),
            provider('other', other),
            provider('existing', idp, { allow_existing_users: true }),
            provider('closed', idp, { enable_registration: false }),
            provider(
              'choose',
              idp,
              mapping({ display_name_template: '{{ user.name }}', email_template: '{{ user.email }}' }),
            ),
            provider(
              'confirm',
              idp,
              mapping({ localpart_template: '{{ user.preferred_username }}', confirm_localpart: true }),
            ),
            provider(
              'pictures',
              idp,
              mapping({
                localpart_template: '{{ user.preferred_username }}',
                picture_template: '{{ user.picture }}',
              }),
            ),
            provider('groups', idp, {
              scopes: ['openid', 'profile'],
              attribute_requirements: [
                { attribute: 'groups', one_of: ['staff', 'admins'] },
                { attribute: 'preferred_username' },
                { attribute: 'locale', value: 'de' },
              ],
            }),
            provider('userinfo', idp, {
              user_profile_method: 'userinfo_endpoint',
              client_auth_method: 'client_secret_post',
              pkce_method: 'never',
              scopes: ['openid', 'profile'],
            }),
            provider('strict', idp, { skip_verification: false }),
            provider('plain', idp, {
              discover: false,
              scopes: ['read_user'],
              pkce_method: 'always',
              authorization_endpoint: `${idp.issuer}/auth`,
              token_endpoint: `${idp.issuer}/token`,
              userinfo_endpoint: `${idp.issuer}/me`,
              user_mapping_provider: {
                config: {
                  subject_claim: 'sub',
                  localpart_template: '{{ user.email | localpart_from_email }}',
                },
              },
            }),
          ],
        }),
      });
    });
    after(async () => {
      await hearth.stop();
      await idp.stop();
      await other.stop();
    });
    beforeEach(() => {
      for (const server of [idp, other]) {
        server.replace = () => undefined;
        server.user = undefined;
        server.authorizations.length = 0;
        server.tokenRequests.length = 0;
      }
    });
    const api = (method: string, path: string, body?: object, token?: string) =>
      hearth.server.api(method, path, { body, ...(token !== undefined && { token }) } as never);
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

    it('shows a page to choose a provider when the client names none, and leads to the chosen one', async () => {
      const browser = hearth.browser();
      const picker = await browser.get(hearth.redirectUrl(undefined, undefined, { login_hint: 'x' }));
      assert.equal(picker.status, 200);
      assert.match(picker.body, /value="oidc-main".*Continue with Provider main/s);
      assert.match(picker.body, /name="login_hint" value="x"/);
      idp.user = { sub: 'picker', preferred_username: 'picker' };
      const target = encodeURIComponent('https://app.client.example/');
      const page = await browser.get(
        `${publicUrl}/_synapse/client/pick_idp?redirectUrl=${target}&idp=oidc-main`,
      );
      assert.equal((await hearth.session(page))['user_id'], '@picker:test');
    });

    it('[option: oidc_providers[].discover] [option: oidc_providers[].issuer] [option: oidc_providers[].client_id] [option: oidc_providers[].client_secret] [option: oidc_providers[].scopes] [option: oidc_providers[].user_mapping_provider.config.localpart_template] [option: oidc_providers[].user_mapping_provider.config.display_name_template] [option: oidc_providers[].user_mapping_provider.config.email_template] [option: oidc_providers[].user_mapping_provider.config.extra_attributes] [option: oidc_providers[].enable_registration] [option: sso.client_whitelist] creates an account at the first login and finds it at the second', async () => {
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

    it('logs in at a provider in a private network, and fetches no picture from there', async () => {
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

    it('gives each provider its own users: the same subject at another provider is another user', async () => {
      idp.user = { sub: 'same', preferred_username: 'henry' };
      other.user = { sub: 'same', preferred_username: 'henry' };
      assert.equal((await hearth.session(await hearth.login('oidc-main')))['user_id'], '@henry:test');
      const second = await hearth.session(await hearth.login('oidc-other'));
      assert.equal(second['user_id'], '@henry1:test', 'a name that is taken gets a number');
    });

    it('[option: oidc_providers[].allow_existing_users] links an existing account to one user of the provider, and refuses a second user', async () => {
      const password = await hearth.server.register('ines');
      idp.user = { sub: 'u10', preferred_username: 'ines' };
      assert.equal((await hearth.session(await hearth.login('oidc-existing')))['user_id'], password.userId);
      assert.equal((await hearth.session(await hearth.login('oidc-existing')))['user_id'], password.userId);
      idp.user = { sub: 'thief', preferred_username: 'ines' };
      const refused = await hearth.login('oidc-existing');
      assert.equal(refused.status, 403);
      assert.match(refused.body, /belongs to another user/);
    });

    it('refuses new users of a provider with enable_registration: false', async () => {
      idp.user = { sub: 'u11', preferred_username: 'judy' };
      const page = await hearth.login('oidc-closed');
      assert.equal(page.status, 403);
      assert.match(page.body, /no account on this server/);
      assert.equal((await api('GET', '/_matrix/client/v3/profile/@judy:test')).status, 404);
    });

    it('binds no mail address that another account has, or that the provider has not verified', async () => {
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

    it('[option: oidc_providers[].user_mapping_provider.config.confirm_localpart] asks new users for a name, checks it, and uses only what they chose', async () => {
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

    it('refuses a chosen name with 403 when the provider decides the name, also while the user reads the terms', async () => {
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

    it('asks new users for a name when no template makes one', async () => {
      idp.user = { sub: 'c2', name: 'Lena', email: 'lena@mail.example' };
      const browser = hearth.browser();
      const form = await hearth.login('oidc-choose', browser);
      assert.match(form.body, /name="username" value=""/);
      const done = await browser.post(form.url, { username: 'lena', use_display_name: 'true' });
      assert.equal((await hearth.session(done))['user_id'], '@lena:test');
      assert.equal(await hearth.displayName('@lena:test'), 'Lena');
    });

    it('[option: oidc_providers[].backchannel_logout_enabled] logs out the devices of the session that a provider names, and only with a valid token', async () => {
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

    it('accepts logins after the provider has changed its keys', async () => {
      idp.user = { sub: 'k1', preferred_username: 'nina' };
      assert.equal((await hearth.login('oidc-main')).status, 303);
      await idp.rotateKeys();
      assert.equal((await hearth.login('oidc-main')).status, 303);
    });

    it('shows the escaped reason when the user or the provider refuses the login', async () => {
      const page = await hearth.login('oidc-main');
      assert.equal(page.status, 400);
      assert.match(page.body, /The user &lt;b&gt;refused&lt;\/b&gt;/);
      assert.match(page.body, /access_denied/);
    });

    it('refuses logins of deactivated and locked users', async () => {
      const admin = await registerAdmin(hearth.server);
      for (const [name, change, text] of [
        ['olga', { deactivated: true }, /Account deactivated/],
        ['paul', { locked: true }, /locked/],
      ] as const) {
        idp.user = { sub: name, preferred_username: name };
        const page = await hearth.login('oidc-main');
        await admin.ask('PUT', `/_synapse/admin/v2/users/@${name}:test`, change);
        const late = await api('POST', '/_matrix/client/v3/login', {
          type: 'm.login.token',
          token: tokenIn(page),
        });
        assert.ok(late.status === 403 || late.status === 401, `${name} ${late.raw}`);
        const refused = await hearth.login('oidc-main');
        assert.equal(refused.status, 403);
        assert.match(refused.body, text);
      }
    });

    describe('attacks on logins with OpenID Connect', () => {
      /** Begins a login and returns the URL with which the provider sends the browser back. */
      const responseUrl = async (browser = hearth.browser(), provider = 'oidc-main') => {
        const sent: string[] = [];
        const { once } = browser;
        browser.once = async (url, ...rest) => {
          if (url.startsWith(callback)) {
            sent.push(url);
            return { status: 200, headers: {}, body: '', url };
          }
          return once.call(browser, url, ...rest);
        };
        await hearth.login(provider, browser);
        browser.once = once;
        assert.ok(sent[0], 'no response of the provider');
        return sent[0];
      };

      it('refuses a response in a browser that has not begun the login (login CSRF)', async () => {
        idp.user = { sub: 'attacker', preferred_username: 'attacker' };
        const url = await responseUrl();
        const page = await hearth.browser().get(url);
        assert.equal(page.status, 400);
        assert.match(page.body, /begun in another browser/);
      });

      it('refuses a response that is sent twice, or with an unknown state', async () => {
        idp.user = { sub: 'r1', preferred_username: 'quentin' };
        const browser = hearth.browser();
        const url = await responseUrl(browser);
        assert.equal((await browser.get(url)).status, 303);
        assert.equal((await browser.get(url)).status, 400);
        const changed = new URL(await responseUrl(browser));
        changed.searchParams.set('state', 'guess');
        assert.equal((await browser.get(changed.href)).status, 400);
      });

      it('refuses the code of another login of the same browser, whose nonce and verifier differ', async () => {
        idp.user = { sub: 'r2', preferred_username: 'rosa' };
        const browser = hearth.browser();
        const [one, two] = [new URL(await responseUrl(browser)), new URL(await responseUrl(browser))];
        one.searchParams.set('code', two.searchParams.get('code')!);
        assert.equal((await browser.get(one.href)).status, 400);
        const [three, four] = [
          new URL(await responseUrl(browser, 'oidc-userinfo')),
          new URL(await responseUrl(browser, 'oidc-userinfo')),
        ];
        three.searchParams.set('code', four.searchParams.get('code')!);
        const page = await browser.get(three.href);
        assert.equal(page.status, 400, 'the nonce differs, without PKCE too');
      });

      it('refuses a response that names another issuer (mix-up)', async () => {
        idp.user = { sub: 'r3', preferred_username: 'sven' };
        const browser = hearth.browser();
        const url = new URL(await responseUrl(browser));
        url.searchParams.set('iss', other.issuer);
        assert.equal((await browser.get(url.href)).status, 400);
        assert.equal(other.tokenRequests.length, 0);
      });

      it('refuses id tokens with another key, algorithm, audience, issuer or nonce, and expired ones', async () => {
        idp.user = { sub: 'r4', preferred_username: 'tom' };
        const { SignJWT } = await import('jose');
        const forge = async (change: (claims: Record<string, unknown>) => Promise<string>) => {
          idp.replace = () => undefined;
          const browser = hearth.browser();
          const url = await responseUrl(browser);
          const nonce = idp.authorizations.at(-1)!.get('nonce');
          const now = Math.floor(Date.now() / 1000);
          const claims = {
            iss: idp.issuer,
            aud: 'hearth',
            sub: 'victim',
            preferred_username: 'victim',
            nonce,
            iat: now,
            exp: now + 60,
          };
          const token = await change(claims);
          idp.replace = (path, real) => (path === '/token' ? { ...real, id_token: token } : undefined);
          return (await browser.get(url)).status;
        };
        const unsigned = (claims: object) =>
          `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.`;
        const withSecret = (claims: Record<string, unknown>) =>
          new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from('a secret'));
        assert.equal(await forge((claims) => idp.sign({ ...claims, preferred_username: 'genuine' })), 303);
        assert.equal(await forge((claims) => other.sign(claims)), 400, 'key');
        assert.equal(await forge(async (claims) => unsigned(claims)), 400, 'none');
        assert.equal(await forge(withSecret), 400, 'HS256');
        assert.equal(await forge((claims) => idp.sign({ ...claims, aud: 'elsewhere' })), 400, 'audience');
        assert.equal(await forge((claims) => idp.sign({ ...claims, iss: other.issuer })), 400, 'issuer');
        assert.equal(await forge((claims) => idp.sign({ ...claims, nonce: 'another' })), 400, 'nonce');
        assert.equal(await forge((claims) => idp.sign({ ...claims, exp: 1000 })), 400, 'expired');
      });

      it('refuses redirect URLs that would run scripts, and asks the user before it sends a login token to an unknown client', async () => {
        idp.user = { sub: 'r5', preferred_username: 'ute' };
        for (const url of [
          'javascript:alert(1)',
          'data:text/html,x',
          ' javascript:x',
          'nothing',
          'https://a;sandbox/',
          'https://*/',
          `https://x/${'x'.repeat(3000)}`,
        ]) {
          assert.equal((await hearth.browser().get(hearth.redirectUrl('oidc-main', url))).status, 400, url);
        }
        for (const url of [
          'https://evil.client.example/?loginToken=stolen',
          'https://app.client.example@evil.client.example/',
          'https:\\\\evil.client.example/https://app.client.example/',
        ]) {
          const page = await hearth.browser().get(hearth.redirectUrl('oidc-main', url));
          assert.equal(page.status, 200, url);
          assert.equal(page.headers['location'], undefined);
          assert.match(page.body, /Continue to https:\/\/evil\.client\.example</);
          assert.doesNotMatch(page.body, /loginToken=stolen/);
          assert.equal(page.headers['referrer-policy'], 'no-referrer');
          assert.equal((await hearth.session(page))['user_id'], '@ute:test');
        }
      });
    });
  });
});
