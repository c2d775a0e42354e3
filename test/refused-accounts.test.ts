import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { SignJWT } from 'jose';
import { createLogger } from '../src/kernel/observability/index.ts';
import { fieldsOf, locationOf, OAuthClient, TestBrowser } from '../src/oauth/test/oauth-client.ts';
import { CasServer } from '../src/sso/test/cas-server.ts';
import { responseUrl, SamlIdp } from '../src/sso/test/saml-idp.ts';
import { SsoServer, ssoOptions, tokenIn } from '../src/sso/test/sso-server.ts';
import { registrations } from './modules/registering-module.ts';
import { forSelectedDatabases } from './support/databases/databases.ts';
import { ApplicationService } from './support/other-servers/application-service.ts';
import type { ApiAnswer, TestServer } from './support/servers/server.ts';
import { registerAdmin } from './support/users/register-admin.ts';
import type { TestClient } from './support/users/test-client.ts';

const v3 = '/_matrix/client/v3';
const password = 'correct horse';
const jwtSecret = Buffer.from('a shared secret that is long enough for HMAC with SHA-256');
const idp = new SamlIdp('https://idp.client.example');
const accountPage = '/_synapse/client/account';
const signInPage = '/_synapse/client/oauth2/sign_in';
const linkPage = '/_synapse/client/oauth2/link';
/** Ways to log in that create an account at the first login. */
const creatingWays = new Set(['CAS', 'SAML', 'a JSON web token']);
const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';

/** Outcome of a login: `in`, or the status with the error code or with a word of the page. */
type Outcome = 'in' | readonly [status: number, reason: unknown];

/**
 * Prepares a login of a user. @param token access token of the user, if registered @returns a function that logs the
 * user in
 */
type Way = (name: string, token: string) => Promise<() => Promise<Outcome>>;

forSelectedDatabases(import.meta.url, (open) => {
  describe('logins', () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-refused-'));
    /** The logins that the module has checked, in order. */
    const checkedLogins: object[] = [];
    /** Lines that the server has logged, and secrets that none of them may contain. */
    const lines: string[] = [];
    const secrets = new Set<string>([password]);
    const keepSecret = <T>(secret: T): T => {
      assert.equal(typeof secret, 'string');
      secrets.add(secret as string);
      return secret;
    };
    let cas: CasServer;
    let bridge: ApplicationService;
    let hearth: SsoServer;
    let server: TestServer;
    let admin: TestClient;
    let client: OAuthClient;
    before(async () => {
      cas = await CasServer.start();
      bridge = await ApplicationService.start('irc', {
        namespaces: { users: [{ regex: '@.*:test', exclusive: false }] },
      });
      writeFileSync(join(folder, 'idp.xml'), idp.metadata);
      registrations.set('logins', (api) => {
        api.registerPasswordProvider({
          loginTypes: { 'org.test.card': ['card'] },
          authenticate: ({ userId, fields }) => (fields['card'] === 'valid' ? userId : undefined),
        });
        api.registerSpamChecker({
          checkLogin: (login) => {
            checkedLogins.push(login);
            return login.deviceId === 'DENIED' ? { errcode: 'ORG_TEST_NO', error: 'Not here' } : 'allow';
          },
        });
      });
      const destination = { write: (line: string) => void lines.push(line) };
      const log = createLogger({ level: 'debug', destination });
      const config = {
        oauth: { oauth2: { enabled: true } },
        accounts: {
          login_via_existing_session: { enabled: true, require_ui_auth: false, token_timeout: 60_000 },
        },
        appservices: { app_service_config_files: [bridge.file] },
        modules: {
          modules: [
            {
              module: join(import.meta.dirname, 'modules', 'registering-module.ts'),
              config: { key: 'logins' },
            },
          ],
        },
        sso: ssoOptions({
          sso: { client_whitelist: ['https://app.client.example/'] },
          cas_config: { enabled: true, server_url: cas.url, protocol_version: 3 },
          jwt_config: { enabled: true, secret: jwtSecret.toString(), algorithm: 'HS256' },
          saml2_config: { sp_config: { metadata: { local: [join(folder, 'idp.xml')] } } },
        }),
      };
      hearth = await SsoServer.start(open.kind, config as never, { log });
      server = hearth.server;
      keepSecret(bridge.token);
      admin = await registerAdmin(server);
      client = await OAuthClient.register(server);
    });
    after(async () => {
      await hearth.stop();
      await bridge.stop();
      await cas.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    const outcomeOf = ({ status, body }: ApiAnswer): Outcome =>
      status === 200 ? 'in' : [status, body['errcode']];
    const logIn = async (body: object, token?: string) => {
      const answer = await server.api('POST', `${v3}/login`, { body, ...(token && { token }) });
      if (answer.status === 200) keepSecret(answer.body['access_token']);
      return outcomeOf(answer);
    };
    const oauthOutcome = ({ status, json }: { status: number; json: Record<string, unknown> }): Outcome =>
      status === 200 ? 'in' : [status, json['error']];
    /** Outcome of a login through a provider: the client receives a login token, or the user sees a page. */
    const pageOutcome = async (page: { status: number; headers: object; body: string }): Promise<Outcome> => {
      if (page.status >= 400) return [page.status, /deactivated|locked/.exec(page.body)?.[0]];
      return logIn({ type: 'm.login.token', token: keepSecret(tokenIn(page as never)) });
    };
    const signedIn = async (name: string, url: string) => {
      const browser = new TestBrowser(server);
      const page = await browser.open(locationOf(await browser.signIn(await browser.open(url), name)));
      return { browser, page };
    };
    const throughCas = async (user: string) => {
      cas.user = { name: user };
      const browser = hearth.browser();
      const page = await hearth.login('cas', browser);
      for (const url of browser.visited) {
        const ticket = new URL(url).searchParams.get('ticket');
        if (ticket !== null) keepSecret(ticket);
      }
      return pageOutcome(page);
    };
    const throughSaml = async (uid: string) => {
      const browser = hearth.browser();
      const { id, relayState } = idp.read(
        (await browser.get(hearth.redirectUrl('saml'))).headers.location ?? '',
      );
      const SAMLResponse = await idp.response({ attributes: { uid: [uid] }, inResponseTo: id });
      keepSecret(SAMLResponse.slice(-200));
      const headers = { 'sec-fetch-site': 'cross-site' };
      return pageOutcome(await browser.post(responseUrl, { SAMLResponse, RelayState: relayState }, headers));
    };
    const withToken = async (user: string) => {
      const token = await new SignJWT({ sub: user }).setProtectedHeader({ alg: 'HS256' }).sign(jwtSecret);
      return logIn({ type: 'org.matrix.login.jwt', token: keepSecret(token) });
    };
    const identifiedAs = (name: string) => ({ identifier: { type: 'm.id.user', user: name } });

    /** Returns a way to log in that creates the account at its first use. */
    const creating =
      (way: (name: string) => Promise<Outcome>): Way =>
      async (name) =>
      () =>
        way(name);

    const lockedUser = [401, 'M_USER_LOCKED'] as const;
    const deactivatedUser = [403, 'M_USER_DEACTIVATED'] as const;
    const unknownToken = [401, 'M_UNKNOWN_TOKEN'] as const;
    const invalidGrant = [400, 'invalid_grant'] as const;

    /** The ways to log in, with the outcomes for a locked and for a deactivated user. */
    const ways: readonly (readonly [name: string, way: Way, locked: Outcome, deactivated: Outcome])[] = [
      [
        'a password',
        async (name) => () => logIn({ type: 'm.login.password', ...identifiedAs(name), password }),
        lockedUser,
        deactivatedUser,
      ],
      [
        'a password provider of a module',
        async (name) => () => logIn({ type: 'org.test.card', ...identifiedAs(name), card: 'valid' }),
        lockedUser,
        deactivatedUser,
      ],
      [
        'a login token',
        async (_, token) => {
          const { body } = await server.api('POST', '/_matrix/client/v1/login/get_token', {
            token,
            body: {},
          });
          return () => logIn({ type: 'm.login.token', token: keepSecret(body['login_token']) });
        },
        lockedUser,
        [403, 'M_FORBIDDEN'],
      ],
      [
        'an application service',
        async (name) => () =>
          logIn({ type: 'm.login.application_service', ...identifiedAs(name) }, bridge.token),
        lockedUser,
        [403, 'M_FORBIDDEN'],
      ],
      [
        'an access token',
        async (_, token) => async () => outcomeOf(await server.api('GET', `${v3}/account/whoami`, { token })),
        lockedUser,
        unknownToken,
      ],
      [
        'a refresh token',
        async (name) => {
          const body = { type: 'm.login.password', ...identifiedAs(name), password, refresh_token: true };
          const { refresh_token } = (await server.api('POST', `${v3}/login`, { body })).body;
          return async () =>
            outcomeOf(
              await server.api('POST', `${v3}/refresh`, {
                body: { refresh_token: keepSecret(refresh_token) },
              }),
            );
        },
        lockedUser,
        unknownToken,
      ],
      ['CAS', creating(throughCas), [403, 'locked'], [403, 'deactivated']],
      ['SAML', creating(throughSaml), [403, 'locked'], [403, 'deactivated']],
      ['a JSON web token', creating(withToken), lockedUser, deactivatedUser],
      [
        'the sign-in page of OAuth 2.0',
        async (name) => async () => {
          const browser = new TestBrowser(server);
          const { status, text } = await browser.signIn(await browser.open(accountPage), name);
          return status === 303 ? 'in' : [status, /deactivated|locked/.exec(text)?.[0]];
        },
        [401, 'locked'],
        [403, 'deactivated'],
      ],
      [
        'a browser that is signed in to the account page',
        async (name) => {
          const { browser } = await signedIn(name, accountPage);
          return async () => {
            const page = await browser.get(accountPage);
            return page.status === 200 ? 'in' : [page.status, locationOf(page).split('?')[0]];
          };
        },
        [303, signInPage],
        [303, signInPage],
      ],
      [
        'an authorization code',
        async (user) => {
          const code = (await client.authorize(new TestBrowser(server), { user })).get('code')!;
          return async () => oauthOutcome(await client.exchange(keepSecret(code)));
        },
        invalidGrant,
        invalidGrant,
      ],
      [
        'a device code',
        async (name) => {
          const { device_code, verification_uri_complete: verificationUrl } = (
            await client.beginOnDevice('TV')
          ).json;
          const { browser, page } = await signedIn(name, String(verificationUrl));
          await browser.post(linkPage, { ...fieldsOf(page.text), decision: 'allow' });
          const grant = { grant_type: deviceGrant, device_code: keepSecret(String(device_code)) };
          return async () => oauthOutcome(await client.token(grant));
        },
        invalidGrant,
        invalidGrant,
      ],
      [
        'a refresh token of OAuth 2.0',
        async (user) => {
          const { refresh_token } = await client.logIn(new TestBrowser(server), { user });
          return async () => oauthOutcome(await client.refresh(keepSecret(refresh_token)));
        },
        invalidGrant,
        invalidGrant,
      ],
    ];

    it('calls a module once, with the device, to check whether a user may log in by OAuth 2.0', async () => {
      await server.register('once');
      checkedLogins.length = 0;
      const browser = new TestBrowser(server);
      const code = (await client.authorize(browser, { user: 'once', deviceId: 'PHONE' })).get('code')!;
      assert.deepEqual(checkedLogins, [], 'before a session is opened');
      assert.equal((await client.exchange(code)).status, 200);
      const login = { userId: '@once:test', type: 'm.login.oauth', deviceId: 'PHONE' };
      assert.deepEqual(checkedLogins, [{ ...login, deviceName: 'Element X', ip: '127.0.0.1' }]);
      const denied = (await client.authorize(browser, { deviceId: 'DENIED' })).get('code')!;
      assert.deepEqual(oauthOutcome(await client.exchange(denied)), [400, 'access_denied']);
    });

    for (const [name, way, locked, deactivated] of ways) {
      it(`refuses a locked and a deactivated user who uses ${name}`, async () => {
        const user = name.replaceAll(/\W/g, '').toLowerCase();
        const isCreated = creatingWays.has(name);
        const token = isCreated ? '' : (await server.register(user)).token;
        const outcomes: Record<string, Outcome> = { active: await (await way(user, token))() };
        for (const [state, change] of [
          ['locked', { locked: true }],
          ['deactivated', { locked: false, deactivated: true }],
        ] as const) {
          const set = (changed: object) =>
            admin.request('PUT', `/_synapse/admin/v2/users/@${user}:test`, changed);
          await set({ locked: false });
          const login = await way(user, token);
          assert.equal((await set(change)).status, 200);
          outcomes[state] = await login();
        }
        assert.deepEqual(outcomes, { active: 'in', locked, deactivated });
      });
    }

    it('logs no password, token, code, ticket or assertion of a login, also at the level debug', () => {
      const log = lines.join('');
      assert.ok(secrets.size > 25 && lines.length > 100, `${secrets.size} ${lines.length}`);
      for (const secret of secrets) assert.ok(!log.includes(secret), secret);
    });
  });
});
