import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type ManualClock, manualClock } from '../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { startTestServer, type TestServer, type TestUser } from '../../test/support/servers/server.ts';
import { createLogger } from '../kernel/observability/index.ts';
import {
  answerIn,
  challengeOf,
  elementX,
  fieldsOf,
  locationOf,
  OAuthClient,
  TestBrowser,
  type WebAnswer,
} from './test/oauth-client.ts';

const minute = 60_000;

/** Lines that the server has logged. */
const lines: string[] = [];
const authorizePath = '/_synapse/client/oauth2/authorize';

forSelectedDatabases(import.meta.url, (open) => {
  describe('the authorization server', () => {
    let server: TestServer;
    let clock: ManualClock;
    let alice: TestUser;
    let client: OAuthClient;
    before(async () => {
      clock = manualClock();
      lines.length = 0;
      server = await startTestServer({
        database: open.kind,
        log: createLogger({ level: 'debug', destination: { write: (line) => void lines.push(line) } }),
        clock,
        config: { oauth: { oauth2: { enabled: true } } },
      });
      alice = await server.register('alice');
      await server.register('bob');
      client = await OAuthClient.register(server);
    });
    after(() => server.stop());
    /** Returns the parameters of the link to the client on the page about an invalid request. */
    const linkParametersOf = ({ status, headers, text }: WebAnswer) => {
      assert.deepEqual([status, headers.get('location')], [400, null]);
      const link = /href="(io\.element\.android:[^"]+)"/.exec(text)![1]!;
      return answerIn(link.replaceAll('&amp;', '&'), 'io.element.android:/');
    };

    it('logs in by the requests of Element X in their order [option: oauth2.enabled]', async () => {
      const versions = await server.api('GET', '/_matrix/client/versions');
      assert.ok((versions.body['versions'] as string[]).includes('v1.15'));
      const prefix = 'urn:matrix:org.matrix.msc2967.client';
      const scope = `${prefix}:api:* ${prefix}:device:ELEMENTX`;
      const browser = new TestBrowser(server);
      const consent = await browser.open(
        client.authorizationUrl('ELEMENTX', { scope, login_hint: 'mxid:@alice:test' }),
      );
      assert.match(consent.text, /name="username" value="@alice:test"/);
      const redirect = await browser.signIn(consent, 'alice');
      const page = await browser.get(locationOf(redirect));
      assert.match(page.text, /Element X<\/strong> \(element\.io\)/);
      assert.match(page.headers.get('content-security-policy')!, /form-action 'self' io\.element\.android:/);
      const answer = await browser.post(authorizePath, { ...fieldsOf(page.text), decision: 'allow' });
      const parameters = answerIn(locationOf(answer), 'io.element.android:/');
      assert.deepEqual([parameters.get('state'), parameters.get('iss')], ['the state', 'https://test/']);
      const { status, json, headers } = await client.exchange(parameters.get('code')!);
      assert.equal(status, 200);
      assert.equal(headers.get('cache-control'), 'no-store');
      const { access_token: token, refresh_token: refresh, ...rest } = json;
      assert.deepEqual(rest, {
        token_type: 'Bearer',
        expires_in: 300,
        scope,
      });
      assert.deepEqual(await client.whoami(token), ['@alice:test', 'ELEMENTX']);
      const devices = await server.api('GET', '/_matrix/client/v3/devices/ELEMENTX', {
        token: String(token),
      });
      assert.equal(devices.body['display_name'], 'Element X');
      const renewed = await client.refresh(refresh);
      assert.deepEqual(await client.whoami(renewed.json['access_token']), ['@alice:test', 'ELEMENTX']);
      assert.deepEqual(await client.whoami(token), [401, 'M_UNKNOWN_TOKEN']);
      assert.equal((await client.revoke(renewed.json['access_token'])).status, 200);
      assert.deepEqual(await client.whoami(renewed.json['access_token']), [401, 'M_UNKNOWN_TOKEN']);
      assert.equal((await client.refresh(renewed.json['refresh_token'])).json['error'], 'invalid_grant');
      assert.equal((await client.revoke('unknown')).status, 200);
      assert.deepEqual(await client.whoami(alice.token), ['@alice:test', alice.deviceId]);
    });

    it('revokes both tokens of a session by its refresh token, also when a request has no client_id or an unknown one, because tools that find leaked tokens send such requests', async () => {
      const browser = new TestBrowser(server);
      for (const more of [{}, { client_id: 'unknown', token_type_hint: 'access_token' }]) {
        const tokens = await client.logIn(browser, { deviceId: 'LEAKED' });
        const fields = { token: tokens['refresh_token']!, ...more };
        assert.equal((await browser.post(client.metadata['revocation_endpoint']!, fields)).status, 200);
        assert.deepEqual(await client.whoami(tokens['access_token']), [401, 'M_UNKNOWN_TOKEN']);
        assert.equal((await client.refresh(tokens['refresh_token'])).json['error'], 'invalid_grant');
      }
      const empty = await browser.post(client.metadata['revocation_endpoint']!, {});
      assert.deepEqual([empty.status, empty.json['error']], [400, 'invalid_request']);
    });

    it('serves the metadata of the authorization server at the paths of the specification, of MSC2965 and of RFC 8414', async () => {
      const unstable = await server.api('GET', '/_matrix/client/unstable/org.matrix.msc2965/auth_metadata');
      assert.deepEqual(unstable.body, client.metadata);
      for (const name of ['oauth-authorization-server', 'openid-configuration']) {
        const { json, headers } = await new TestBrowser(server).get(`/.well-known/${name}`);
        assert.deepEqual([json, headers.get('access-control-allow-origin')], [client.metadata, '*'], name);
      }
      assert.equal(client.metadata['account_management_uri'], 'https://test/_synapse/client/account');
    });

    it('accepts the scopes of MSC2967, and answers by fragment when the client requests it', async () => {
      const scope =
        'urn:matrix:org.matrix.msc2967.client:api:* urn:matrix:org.matrix.msc2967.client:device:OLD unknown';
      const url = client.authorizationUrl('OLD', { scope, response_mode: 'fragment' });
      const browser = new TestBrowser(server);
      const page = await browser.open(locationOf(await browser.signIn(await browser.open(url), 'alice')));
      const answer = await browser.post(authorizePath, { ...fieldsOf(page.text), decision: 'allow' });
      assert.match(locationOf(answer), /^io\.element\.android:\/#state=/);
      const parameters = answerIn(locationOf(answer), 'io.element.android:/');
      const { json } = await client.exchange(parameters.get('code')!);
      assert.equal(json['scope'], scope.replace(' unknown', ''));
      assert.deepEqual(await client.whoami(json['access_token']), ['@alice:test', 'OLD']);
    });

    it('shows errors of an authorization request on a page with a link to the client, so that no link to the server redirects to a website of an attacker, and redirects with access_denied when the user cancels', async () => {
      const browser = new TestBrowser(server);
      const errorOnPage = async (more: Record<string, string>) => {
        const parameters = linkParametersOf(await browser.get(client.authorizationUrl('D', more)));
        assert.equal(parameters.get('state'), 'the state');
        return parameters.get('error');
      };
      assert.equal(await errorOnPage({ response_type: 'token' }), 'unsupported_response_type');
      assert.equal(await errorOnPage({ response_mode: 'form_post' }), 'invalid_request');
      assert.equal(await errorOnPage({ scope: 'urn:matrix:client:device:D' }), 'invalid_scope');
      assert.equal(await errorOnPage({ scope: 'urn:matrix:client:api:*' }), 'invalid_scope');
      const two = 'urn:matrix:client:api:* urn:matrix:client:device:A urn:matrix:client:device:B';
      assert.equal(await errorOnPage({ scope: two }), 'invalid_scope');
      const page = await browser.open(
        locationOf(await browser.signIn(await browser.open(client.authorizationUrl('D')), 'alice')),
      );
      const denied = await browser.post(authorizePath, { ...fieldsOf(page.text), decision: 'deny' });
      assert.equal(answerIn(locationOf(denied), 'io.element.android:/').get('error'), 'access_denied');
    });

    it('refuses authorization requests without PKCE by S256, and authorization codes without their verifier', async () => {
      const browser = new TestBrowser(server);
      for (const more of [
        { code_challenge: '' },
        { code_challenge_method: '' },
        { code_challenge_method: 'plain' },
      ]) {
        const answer = await browser.get(client.authorizationUrl('D', more));
        assert.equal(linkParametersOf(answer).get('error'), 'invalid_request');
      }
      const code = (await client.authorize(browser)).get('code')!;
      for (const code_verifier of ['', 'x'.repeat(43), challengeOf('other')]) {
        assert.equal((await client.exchange(code, { code_verifier })).json['error'], 'invalid_grant');
      }
      assert.equal((await client.exchange(code)).status, 200);
    });

    it('shows the user errors about unknown clients and unregistered redirect URIs, and never redirects to such a URI', async () => {
      const browser = new TestBrowser(server);
      for (const more of [
        { client_id: 'unknown' },
        { redirect_uri: 'https://attacker.example/' },
        { redirect_uri: 'io.element.android:/more' },
        { redirect_uri: 'IO.ELEMENT.ANDROID:/' },
        { redirect_uri: 'io.element.android:/?more' },
        { redirect_uri: '' },
      ]) {
        const answer = await browser.get(client.authorizationUrl('D', more));
        assert.equal(answer.status, 400);
        assert.equal(answer.headers.get('location'), null);
        assert.match(answer.text, /role="alert"/);
      }
      const attacker = `redirect_uri=${encodeURIComponent('https://attacker.example/')}`;
      const repeated = client.authorizationUrl('D').replace('redirect_uri=', `${attacker}&redirect_uri=`);
      assert.equal(
        (await browser.get(repeated)).status,
        400,
        'the first value is checked, and no other is used',
      );
      const code = (await client.authorize(browser)).get('code')!;
      const other = await client.exchange(code, { redirect_uri: 'io.element.android:/other' });
      assert.equal(other.json['error'], 'invalid_grant');
    });

    it('accepts an authorization code once, within five minutes, from its client, and ends the session when the code is replayed', async () => {
      const browser = new TestBrowser(server);
      const code = (await client.authorize(browser, { deviceId: 'ONCE' })).get('code')!;
      const other = await OAuthClient.register(server, { ...elementX, client_name: 'Other' });
      assert.equal((await other.exchange(code)).json['error'], 'invalid_grant');
      const answers = await Promise.all([client.exchange(code), client.exchange(code)]);
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);

      const replayedCode = (await client.authorize(browser, { deviceId: 'REPLAYED' })).get('code')!;
      const { json } = await client.exchange(replayedCode);
      assert.deepEqual(await client.whoami(json['access_token']), ['@alice:test', 'REPLAYED']);
      assert.equal((await client.exchange(replayedCode)).json['error'], 'invalid_grant');
      assert.deepEqual(await client.whoami(json['access_token']), [401, 'M_UNKNOWN_TOKEN']);

      const expiredCode = (await client.authorize(browser)).get('code')!;
      await clock.advance(5 * minute);
      assert.equal((await client.exchange(expiredCode)).json['error'], 'invalid_grant');
    });

    it('ends the session when a refresh token is sent again after the tokens that it was exchanged for have been used', async () => {
      const tokens = await client.logIn(new TestBrowser(server), { deviceId: 'STOLEN' });
      const other = await OAuthClient.register(server, { ...elementX, client_name: 'Other' });
      assert.equal((await other.refresh(tokens['refresh_token'])).json['error'], 'invalid_grant');
      const lostAnswer = await client.refresh(tokens['refresh_token']);
      const second = await client.refresh(tokens['refresh_token']);
      assert.deepEqual(
        [lostAnswer.status, second.status],
        [200, 200],
        'the client may have lost the first answer',
      );
      const token = second.json['access_token'];
      assert.deepEqual(await client.whoami(token), ['@alice:test', 'STOLEN']);
      assert.equal((await client.refresh(tokens['refresh_token'])).json['error'], 'invalid_grant');
      assert.deepEqual(await client.whoami(token), [401, 'M_UNKNOWN_TOKEN']);
      assert.equal((await client.refresh(second.json['refresh_token'])).json['error'], 'invalid_grant');
    });

    it('refuses refresh tokens of OAuth 2.0 at POST /refresh, where a stolen one would not be noticed', async () => {
      const tokens = await client.logIn(new TestBrowser(server), { deviceId: 'BESIDE' });
      const body = { refresh_token: tokens['refresh_token'] };
      const refused = await server.api('POST', '/_matrix/client/v3/refresh', { body });
      assert.deepEqual([refused.status, refused.body['errcode']], [401, 'M_UNKNOWN_TOKEN']);
      const renewed = await client.refresh(tokens['refresh_token']);
      assert.deepEqual(await client.whoami(renewed.json['access_token']), ['@alice:test', 'BESIDE']);
    });

    it('answers unknown grant types and clients with error responses of OAuth 2.0', async () => {
      assert.equal((await client.token({ grant_type: 'password' })).json['error'], 'unsupported_grant_type');
      const unknown = await client.token({ grant_type: 'refresh_token', client_id: 'unknown' });
      assert.deepEqual([unknown.status, unknown.json['error']], [401, 'invalid_client']);
      assert.equal((await client.token({})).json['error'], 'unsupported_grant_type');
      for (const grant_type of elementX.grant_types) {
        const { status, json } = await client.token({ grant_type });
        assert.deepEqual([status, json['error']], [400, 'invalid_request'], grant_type);
      }
    });

    it('fills in the user name or mail address of login_hint, and lets a signed-in user sign in again for prompt=login', async () => {
      const hinted = async (login_hint: string) => {
        const { text } = await new TestBrowser(server).open(client.authorizationUrl('D', { login_hint }));
        return /name="username" value="([^"]*)"/.exec(text)?.[1];
      };
      assert.deepEqual(
        [await hinted('mxid:@bob:test'), await hinted('bob@example.org'), await hinted('tel:123')],
        ['@bob:test', 'bob@example.org', ''],
      );
      const browser = new TestBrowser(server);
      await client.authorize(browser);
      const signInPage = await browser.open(client.authorizationUrl('AGAIN', { prompt: 'login' }));
      assert.match(signInPage.text, /name="username" value="@alice:test"/);
      const consent = await browser.open(locationOf(await browser.signIn(signInPage, 'alice')));
      assert.match(consent.text, /AGAIN/);
    });

    it('refuses a deactivated user at the exchange of a code, at a refresh and at the sign-in', async () => {
      const carol = await server.register('carol');
      const browser = new TestBrowser(server);
      const tokens = await client.logIn(browser, { user: 'carol', deviceId: 'CAROL' });
      const code = (await client.authorize(browser, { user: 'carol' })).get('code')!;
      const body = { auth: { type: 'm.login.password', user: 'carol', password: 'correct horse' } };
      const deactivated = await server.api('POST', '/_matrix/client/v3/account/deactivate', {
        token: carol.token,
        body,
      });
      assert.equal(deactivated.status, 200, deactivated.raw);
      assert.equal((await client.exchange(code)).json['error'], 'invalid_grant');
      assert.equal((await client.refresh(tokens['refresh_token'])).json['error'], 'invalid_grant');
      const page = await browser.open(client.authorizationUrl('D'));
      assert.match(page.text, /name="password"/);
      const refused = await browser.signIn(page, 'carol');
      assert.equal(refused.status, 403);
      assert.match(refused.text, /deactivated/);
    });

    it('refuses sign-in forms and consent forms that another site has made or that belong to another browser', async () => {
      const [attacker, victim] = [new TestBrowser(server), new TestBrowser(server)];
      const form = fieldsOf((await attacker.open(client.authorizationUrl('D'))).text);
      const login = { ...form, username: 'bob', password: 'correct horse' };
      assert.equal((await victim.post('/_synapse/client/oauth2/sign_in', login)).status, 403);
      assert.ok(!victim.cookies.has('hearth'));
      const link = `/_synapse/client/oauth2/sign_in/oidc?mark=${form['form_token']}`;
      assert.equal((await victim.get(link)).status, 403);

      const page = await victim.open(client.authorizationUrl('D'));
      const consent = await victim.open(locationOf(await victim.signIn(page, 'alice')));
      const fields = { ...fieldsOf(consent.text), decision: 'allow' };
      assert.equal((await victim.post(authorizePath, { ...fields, form_token: 'guess' })).status, 403);
      for (const returnUrl of [
        'https://attacker.example/',
        '//attacker.example',
        '/_matrix/client/v3/logout',
      ]) {
        const shown = await victim.get(
          `/_synapse/client/oauth2/sign_in?continue=${encodeURIComponent(returnUrl)}`,
        );
        assert.equal(fieldsOf(shown.text)['continue'], '/_synapse/client/account');
      }
    });

    it('forbids frames, caches and scripts on pages of the authorization server, and restricts cookies to this site', async () => {
      const browser = new TestBrowser(server);
      const page = await browser.get(locationOf(await browser.get(client.authorizationUrl('D'))));
      assert.match(
        page.headers.get('content-security-policy')!,
        /default-src 'none'.*frame-ancestors 'none'/,
      );
      assert.doesNotMatch(page.text, /Forgot your password/);
      assert.equal(page.headers.get('x-frame-options'), 'DENY');
      assert.equal(page.headers.get('cache-control'), 'no-store');
      assert.equal(page.headers.get('referrer-policy'), 'no-referrer');
      assert.match(page.headers.get('set-cookie')!, /HttpOnly; SameSite=Lax/);
    });

    it('lets a new user register first with prompt=create, and then continues the login', async () => {
      assert.deepEqual(client.metadata['prompt_values_supported'], ['create']);
      const browser = new TestBrowser(server);
      const redirect = await browser.get(client.authorizationUrl('NEW', { prompt: 'create' }));
      const page = await browser.get(locationOf(redirect));
      assert.match(page.text, /<h1>Create an account<\/h1>/);
      const fields = { username: 'dora', password: 'correct horse', password_again: 'correct horse' };
      let done = await browser.post('/_synapse/client/register', fields);
      if (done.status === 303) done = await browser.get(`/_synapse/client/${locationOf(done)}`);
      const continueLink = /<a class="button" href="([^"]+)">Continue/
        .exec(done.text)![1]!
        .replaceAll('&amp;', '&');
      const signIn = await browser.open(continueLink);
      const consent = await browser.open(locationOf(await browser.signIn(signIn, 'dora')));
      assert.match(consent.text, /@dora:test/);
      const otherBrowser = new TestBrowser(server);
      await otherBrowser.get('/_synapse/client/register?continue=https://attacker.example/');
      assert.equal(otherBrowser.cookies.size, 0);
    });

    it('signs out one browser, and all browsers of a user at POST /logout/all', async () => {
      const [browser, otherBrowser] = [new TestBrowser(server), new TestBrowser(server)];
      const url = client.authorizationUrl('D');
      const signIn = async (target: TestBrowser) =>
        target.open(locationOf(await target.signIn(await target.open(url), 'bob')));
      const page = await signIn(browser);
      const form = /<form method="post" action="[^"]*sign_out".*?<\/form>/s.exec(page.text)![0];
      await browser.post('/_synapse/client/oauth2/sign_out', fieldsOf(form));
      assert.match((await browser.open(url)).text, /name="password"/);
      await signIn(otherBrowser);
      const { token } = await logInWithPassword('bob');
      await server.api('POST', '/_matrix/client/v3/logout/all', { token, body: {} });
      assert.match((await otherBrowser.open(url)).text, /name="password"/);
    });

    it('logs neither authorization codes nor tokens, passwords or cookies, also at the level debug', async () => {
      const browser = new TestBrowser(server);
      const code = (await client.authorize(browser, { deviceId: 'LOGS' })).get('code')!;
      const { json } = await client.exchange(code);
      await client.exchange(code);
      const begun = (await client.beginOnDevice('TELEVISION')).json;
      await client.revoke(json['refresh_token']);
      const secrets = [
        code,
        json['access_token'],
        json['refresh_token'],
        begun['device_code'],
        'correct horse',
      ];
      const logText = lines.join('');
      assert.ok(lines.length > 0, 'the log is collected');
      for (const secret of [...secrets, ...browser.cookies.values()]) {
        assert.ok(!logText.includes(String(secret)), String(secret));
      }
    });

    it('accepts password logins beside OAuth 2.0; the sessions of password logins use interactive authentication', async () => {
      const { token, deviceId } = await logInWithPassword('alice');
      const answer = await server.api('DELETE', `/_matrix/client/v3/devices/${deviceId}`, {
        token,
        body: {},
      });
      assert.deepEqual([answer.status, answer.body['flows']], [401, [{ stages: ['m.login.password'] }]]);
    });

    async function logInWithPassword(user: string): Promise<{ token: string; deviceId: string }> {
      const body = { type: 'm.login.password', user, password: 'correct horse' };
      const answer = await server.api('POST', '/_matrix/client/v3/login', { body });
      return { token: String(answer.body['access_token']), deviceId: String(answer.body['device_id']) };
    }
  });
});
