import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { createLogger } from '../../kernel/observability/index.ts';
import { CasServer } from '../../sso/test/cas-server.ts';
import { OidcServer } from '../../sso/test/oidc-server.ts';
import { publicUrl, SsoServer, ssoOptions } from '../../sso/test/sso-server.ts';
import type { BrowserPage, TestBrowser } from '../../sso/test/test-browser.ts';
import { challengeOf, elementX, fieldsOf, postJson, verifier } from '../test/oauth-client.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('logins by OAuth 2.0 through an identity provider', () => {
    let cas: CasServer;
    let idp: OidcServer;
    let hearth: SsoServer;
    const lines: string[] = [];
    before(async () => {
      cas = await CasServer.start();
      idp = await OidcServer.start(() => [
        {
          client_id: 'hearth',
          client_secret: 'a secret',
          redirect_uris: [`${publicUrl}/_synapse/client/oidc/callback`],
          backchannel_logout_uri: `${publicUrl}/_synapse/client/oidc/backchannel_logout`,
          backchannel_logout_session_required: true,
        },
      ]);
      const oidc = {
        idp_id: 'work',
        idp_name: 'Work',
        issuer: idp.issuer,
        client_id: 'hearth',
        client_secret: 'a secret',
        skip_verification: true,
        backchannel_logout_enabled: true,
        user_mapping_provider: { config: { localpart_template: '{{ user.sub }}' } },
      };
      const cas_config = { enabled: true, idp_name: 'University', server_url: cas.url, protocol_version: 3 };
      const destination = { write: (line: string) => void lines.push(line) };
      const log = createLogger({ level: 'debug', destination });
      const config = {
        oauth: { oauth2: { enabled: true } },
        accounts: { password_config: { enabled: false } },
        sso: ssoOptions({ cas_config, oidc_providers: [oidc] }),
      };
      hearth = await SsoServer.start(open.kind, config, { log });
    });
    after(async () => {
      await hearth.stop();
      await cas.stop();
      await idp.stop();
    });

    /**
     * Signs in through the identity provider "Work", and allows the login of a client with this device id.
     * @returns the access token
     */
    const logInThroughWork = async (browser: TestBrowser, deviceId: string) => {
      const { server } = hearth;
      const registered = await postJson(server, '/_synapse/client/oauth2/registration', elementX);
      const client = {
        client_id: String(registered.json['client_id']),
        redirect_uri: 'io.element.android:/',
      };
      const query = new URLSearchParams({
        ...client,
        response_type: 'code',
        scope: `urn:matrix:client:api:* urn:matrix:client:device:${deviceId}`,
        code_challenge: challengeOf(verifier),
        code_challenge_method: 'S256',
      });
      const page = await browser.get(`${publicUrl}/_synapse/client/oauth2/authorize?${query}`);
      const link = /href="(\/_synapse\/client\/oauth2\/sign_in\/oidc-work\?[^"]+)"/.exec(page.body);
      const consent = link === null ? page : await browser.get(publicUrl + link[1]!.replaceAll('&amp;', '&'));
      const fields = { ...fieldsOf(consent.body), decision: 'allow' };
      const answer = await browser.post(`${publicUrl}/_synapse/client/oauth2/authorize`, fields);
      const code = new URLSearchParams(String(answer.headers.location).split('?')[1]).get('code')!;
      const body = new URLSearchParams({
        ...client,
        grant_type: 'authorization_code',
        code,
        code_verifier: verifier,
      });
      const response = await fetch(`${server.baseUrl}/_synapse/client/oauth2/token`, {
        method: 'POST',
        body,
      });
      return String(((await response.json()) as Record<string, unknown>)['access_token']);
    };

    it('ends sessions of OAuth 2.0 and the browser session when the identity provider requests a logout [option: oidc_providers[].backchannel_logout_enabled]', async () => {
      idp.user = { sub: 'worker' };
      const [browser, other] = [hearth.browser(), hearth.browser()];
      const tokens = [await logInThroughWork(browser, 'ONE'), await logInThroughWork(browser, 'TWO')];
      const ended = idp.sessionIds.at(-1);
      const kept = await logInThroughWork(other, 'KEPT');
      const statuses = () =>
        Promise.all(
          [...tokens, kept].map(
            async (token) =>
              (await hearth.server.api('GET', '/_matrix/client/v3/account/whoami', { token })).status,
          ),
        );
      const account = `${publicUrl}/_synapse/client/account`;
      assert.deepEqual(await statuses(), [200, 200, 200]);
      const logout = await hearth.browser().post(`${publicUrl}/_synapse/client/oidc/backchannel_logout`, {
        logout_token: await idp.logoutToken('hearth', { sub: 'worker', sid: ended }),
      });
      assert.equal(logout.status, 200);
      assert.deepEqual(await statuses(), [401, 401, 200]);
      assert.match((await browser.get(account)).body, /<h1>Sign in<\/h1>/);
      assert.match((await other.get(account)).body, /<h1>Your account<\/h1>/);
    });

    it('redirects to the identity provider, and back to the page where the user allows the login', async () => {
      cas.user = { name: 'alice' };
      const { server } = hearth;
      const registered = await postJson(server, '/_synapse/client/oauth2/registration', elementX);
      const clientId = String(registered.json['client_id']);
      const query = new URLSearchParams({
        response_type: 'code',
        client_id: clientId,
        redirect_uri: 'io.element.android:/',
        scope: 'urn:matrix:client:api:* urn:matrix:client:device:PHONE',
        code_challenge: challengeOf(verifier),
        code_challenge_method: 'S256',
      });
      const browser = hearth.browser();
      const page = await browser.get(`${publicUrl}/_synapse/client/oauth2/authorize?${query}`);
      assert.doesNotMatch(page.body, /name="password"/);
      const link = /href="(\/_synapse\/client\/oauth2\/sign_in\/cas\?[^"]+)">Sign in with University/.exec(
        page.body,
      );
      const consent = await browser.get(publicUrl + link![1]!.replaceAll('&amp;', '&'));
      assert.match(consent.body, /your account <span class="identifier">@alice:test/);
      assert.ok([...browser.cookies.get(publicUrl)!.keys()].includes('__Host-hearth'));
      const fields = { ...fieldsOf(consent.body), decision: 'allow' };
      const answer = await browser.post(`${publicUrl}/_synapse/client/oauth2/authorize`, fields);
      const code = new URLSearchParams(String(answer.headers.location).split('?')[1]).get('code')!;
      const response = await fetch(`${server.baseUrl}/_synapse/client/oauth2/token`, {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'authorization_code',
          code,
          client_id: clientId,
          redirect_uri: 'io.element.android:/',
          code_verifier: verifier,
        }),
      });
      const { access_token: token } = (await response.json()) as Record<string, string>;
      const { body } = await server.api('GET', '/_matrix/client/v3/account/whoami', { token: token! });
      assert.deepEqual([body['user_id'], body['device_id']], ['@alice:test', 'PHONE']);
    });

    it('requires that the identity provider authenticates the user again for dangerous changes, and accepts no earlier authentication', async () => {
      const deactivation = `${publicUrl}/_synapse/client/account?action=org.matrix.account_deactivate`;
      const linkTo = (provider: string, body: string) =>
        publicUrl +
        new RegExp(`href="(/_synapse/client/oauth2/sign_in/${provider}\\?[^"]+)"`)
          .exec(body)![1]!
          .replaceAll('&amp;', '&');
      const isSignInPage = (page: BrowserPage) => /<h1>Sign in<\/h1>/.test(page.body);
      const withoutPrompt = (link: string) => link.replace('&again=yes', '');

      cas.user = { name: 'carol' };
      const browser = hearth.browser();
      const first = await browser.get(`${publicUrl}/_synapse/client/account`);
      assert.match((await browser.get(linkTo('cas', first.body))).body, /<h1>Your account<\/h1>/);
      const signInPage = await browser.get(deactivation);
      assert.ok(isSignInPage(signInPage), 'the first sign-in may have been silent');
      const link = linkTo('cas', signInPage.body);
      assert.ok(isSignInPage(await browser.get(withoutPrompt(link))), 'a silent return');
      cas.asksAgain = false;
      assert.equal((await browser.get(link)).status, 400, 'a ticket without a password');
      cas.asksAgain = true;
      assert.match((await browser.get(link)).body, /<h1>Deactivate/);

      idp.user = { sub: 'dave' };
      const other = hearth.browser();
      const page = await other.get(deactivation);
      await other.get(linkTo('oidc-work', page.body));
      const signInLink = linkTo('oidc-work', (await other.get(deactivation)).body);
      idp.signedInAt = 1_000_000_000;
      assert.match((await other.get(signInLink)).body, /has not asked you to sign in again/);
      idp.signedInAt = undefined;
      assert.match((await other.get(signInLink)).body, /<h1>Deactivate/);
      const { prompt, max_age } = Object.fromEntries(idp.authorizations.at(-1)!);
      assert.deepEqual([prompt, max_age], ['login', '0']);
    });

    it('refuses a login through an identity provider when another site begins the login', async () => {
      const victim = hearth.browser();
      const page = await victim.get(`${publicUrl}/_synapse/client/oauth2/sign_in/cas?mark=guess`);
      assert.equal(page.status, 403);
      assert.ok(!victim.visited.some((url) => url.startsWith(cas.url)));
    });

    it('logs neither the code and state of the identity provider nor cookies, client secrets and tokens, even at the level debug', async () => {
      idp.user = { sub: 'logged' };
      const browser = hearth.browser();
      const token = await logInThroughWork(browser, 'LOGGED');
      const sent = browser.visited.flatMap((url) => {
        const { searchParams } = new URL(url);
        return [searchParams.get('code'), searchParams.get('state')].filter((value) => value !== null);
      });
      assert.ok(sent.length >= 2, browser.visited.join('\n'));
      const all = lines.join('');
      assert.ok(lines.length > 0, 'the log is collected');
      for (const secret of [token, 'a secret', ...sent, ...browser.cookies.get(publicUrl)!.values()]) {
        assert.ok(!all.includes(secret), secret);
      }
    });

    it('marks OAuth 2.0 as preferred to m.login.sso on a server without password logins', async () => {
      const { body } = await hearth.server.api('GET', '/_matrix/client/v3/login');
      const flow = (body['flows'] as Record<string, unknown>[]).find(({ type }) => type === 'm.login.sso');
      assert.equal(flow?.['oauth_aware_preferred'], true);
    });
  });
});
