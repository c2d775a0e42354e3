import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import type { LoginAttempt, ModuleApi } from 'hearth/module';
import { Administration } from '../../src/admin/test/administration.ts';
import { OAuthClient, TestBrowser } from '../../src/oauth/test/oauth-client.ts';
import { eventually } from '../clients/eventually.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { startTestServer, type TestServer } from '../support/servers/server.ts';
import { TestClient } from '../support/users/test-client.ts';
import { type Callbacks, callbacks, codeOf, delegating, denial } from './delegating.ts';
import { registrations } from './registering-module.ts';

const file = join(import.meta.dirname, 'registering-module.ts');
const clientApi = '/_matrix/client/v3';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`callbacks of modules about accounts on ${database}`, () => {
    let server: TestServer;
    let admin: Administration;
    let anna: TestClient;
    let api: ModuleApi;
    /** The password provider of the running test. */
    let authenticate: (attempt: LoginAttempt) => string | undefined | Promise<string | undefined>;

    before(async () => {
      authenticate = () => undefined;
      registrations.set('accounts', (moduleApi) => {
        api = moduleApi;
        api.registerPasswordProvider({
          loginTypes: { 'm.login.password': ['password'], 'org.test.card': ['card'] },
          authenticate: (attempt) => authenticate(attempt),
          authenticateAddress: (medium, address, password) =>
            `${medium} ${address} ${password}` === 'email anna@example.org from the module'
              ? anna.id
              : undefined,
        });
        api.registerSpamChecker(delegating(['checkRegistration'], 'allow'));
        api.registerAccountRules(delegating(['isExpired', 'usernameFor', 'displayNameFor']));
        api.registerAccountRules(delegating(['mayDeactivate'], 'allow'));
        api.registerAccountObserver(
          delegating([
            'onRegistration',
            'onLogin',
            'onLogout',
            'onDeactivation',
            'onProfile',
            'onAddressAdded',
            'onAddressRemoved',
            'onAccountData',
          ]),
        );
      });
      server = await startTestServer({
        database,
        config: {
          modules: { modules: [{ module: file, config: { key: 'accounts' } }] },
          oauth: { oauth2: { enabled: true } },
        },
      });
      admin = await Administration.open(server);
      anna = await registerClient('anna');
    });
    after(() => server.stop());
    afterEach(() => {
      callbacks.running = {};
      authenticate = () => undefined;
    });

    const login = (body: object) => server.api('POST', `${clientApi}/login`, { body });
    const registerClient = (name: string) => TestClient.register(server, name);

    it('logs in and confirms actions with the passwords and login types of modules, while stored passwords stay valid', async () => {
      const { body: loginResponse } = await server.api('GET', `${clientApi}/login`);
      const flows = loginResponse['flows'] as { type: string }[];
      assert.ok(flows.some(({ type }) => type === 'org.test.card'));
      const attempts: LoginAttempt[] = [];
      authenticate = async (attempt) => {
        attempts.push(attempt);
        const { type, fields, userId } = attempt;
        if (fields[type === 'org.test.card' ? 'card' : 'password'] !== 'from the module') return undefined;
        if (!(await api.users.get(userId))) await api.users.register('carol', { displayName: 'Carol' });
        return userId;
      };
      const name = { identifier: { type: 'm.id.user', user: 'carol' } };
      const first = await login({ type: 'm.login.password', ...name, password: 'from the module' });
      assert.deepEqual([first.status, first.body['user_id']], [200, '@carol:test']);
      assert.deepEqual(attempts[0]?.fields, { password: 'from the module' });
      const profile = await server.api('GET', `${clientApi}/profile/@carol:test`, { token: anna.token });
      assert.equal(profile.body['displayname'], 'Carol');
      const card = await login({ type: 'org.test.card', ...name, card: 'from the module' });
      assert.deepEqual([card.status, card.body['user_id']], [200, '@carol:test']);
      const device = `${clientApi}/devices/${first.body['device_id']}`;
      const token = String(first.body['access_token']);
      const challenge = await server.api('DELETE', device, { token, body: {} });
      const { session } = challenge.body;
      const auth = { type: 'm.login.password', ...name, password: 'from the module', session };
      assert.equal((await server.api('DELETE', device, { token, body: { auth } })).status, 200);
      const wrong = await login({ type: 'org.test.card', ...name, card: 'other' });
      assert.deepEqual([wrong.status, wrong.body['errcode']], [403, 'M_FORBIDDEN']);
      const missing = await login({ type: 'org.test.card', ...name });
      assert.deepEqual([missing.status, missing.body['errcode']], [400, 'M_MISSING_PARAM']);
      const loginWithStoredPassword = { type: 'm.login.password', user: 'anna', password: 'correct horse' };
      assert.equal((await login(loginWithStoredPassword)).status, 200);
      const byAddress = (password: string) => {
        const identifier = { type: 'm.id.thirdparty', medium: 'email', address: 'anna@example.org' };
        return login({ type: 'm.login.password', identifier, password });
      };
      assert.equal((await byAddress('from the module')).body['user_id'], anna.id);
      assert.equal((await byAddress('wrong')).status, 403);
      authenticate = () => {
        throw new Error('on purpose');
      };
      assert.equal((await login(loginWithStoredPassword)).status, 200);
      assert.equal((await login({ ...loginWithStoredPassword, password: 'wrong' })).status, 403);
      authenticate = () => '@unknown:test';
      assert.equal((await login(loginWithStoredPassword)).status, 403);
    });

    it('lets modules refuse all requests of expired accounts but the logout', async () => {
      const fred = await registerClient('fred');
      const whoami = () => server.api('GET', `${clientApi}/account/whoami`, { token: fred.token });
      callbacks.running = { isExpired: (userId) => (userId === fred.id ? true : undefined) };
      assert.deepEqual(codeOf(await whoami()), [403, 'ORG_MATRIX_EXPIRED_ACCOUNT']);
      assert.equal((await anna.call('GET', '/account/whoami')).status, 200);
      callbacks.running = {
        isExpired: () => {
          throw new Error('on purpose');
        },
      };
      assert.equal((await whoami()).status, 200);
      callbacks.running = { isExpired: () => true };
      assert.equal((await fred.call('POST', '/logout', {})).status, 200);
    });

    it('lets modules choose the user names and display names of new accounts, and passes the completed stages to the modules', async () => {
      const register = (username: string) =>
        server.api('POST', `${clientApi}/register`, {
          body: { username, password: 'correct horse', auth: { type: 'm.login.dummy' } },
        });
      const checkedRegistrations: unknown[] = [];
      callbacks.running = {
        usernameFor(registration) {
          checkedRegistrations.push(registration);
          return `member-${registration.username}`;
        },
        displayNameFor: ({ username }) => `Member ${username}`,
      };
      const { body } = await register('gina');
      assert.equal(body['user_id'], '@member-gina:test');
      assert.deepEqual(checkedRegistrations, [{ username: 'gina', stages: { 'm.login.dummy': true } }]);
      const profile = await server.api('GET', `${clientApi}/profile/@member-gina:test`, {
        token: anna.token,
      });
      assert.equal(profile.body['displayname'], 'Member gina');
      callbacks.running = {
        usernameFor: () => {
          throw new Error('on purpose');
        },
      };
      assert.deepEqual(codeOf(await register('hans')), [500, 'M_UNKNOWN']);
    });

    it('lets modules shadow-ban users at registration', async () => {
      callbacks.running = {
        checkRegistration: ({ userId, addresses }) =>
          userId === '@spam:test' && addresses.length === 0 ? 'shadow-ban' : 'allow',
      };
      for (const [name, isShadowBanned] of [
        ['spam', true],
        ['kim', false],
      ] as const) {
        const { id } = await registerClient(name);
        const user = await admin.do('GET', `/v2/users/${id}`);
        assert.equal(user['shadow_banned'], isShadowBanned);
      }
    });

    it('lets modules forbid that users and administrators deactivate accounts', async () => {
      const receivedArguments: unknown[] = [];
      const ines = await registerClient('ines');
      callbacks.running = {
        mayDeactivate(...values) {
          receivedArguments.push(values);
          return denial;
        },
      };
      const auth = { type: 'm.login.password', user: 'ines', password: 'correct horse' };
      assert.deepEqual(codeOf(await ines.call('POST', '/account/deactivate', { auth })), [
        418,
        'ORG_TEST_NO',
      ]);
      assert.deepEqual(codeOf(await admin.call('POST', `/v1/deactivate/${ines.id}`, {})), [
        418,
        'ORG_TEST_NO',
      ]);
      const answerToPut = await admin.call('PUT', `/v2/users/${ines.id}`, { deactivated: true });
      assert.deepEqual(codeOf(answerToPut), [418, 'ORG_TEST_NO']);
      assert.deepEqual(receivedArguments, [
        [ines.id, false],
        [ines.id, true],
        [ines.id, true],
      ]);
      assert.equal((await ines.call('GET', '/account/whoami')).status, 200);
    });

    it('notifies modules of registrations, logins, logouts, deactivations, and changes of profiles, addresses and account data', async () => {
      const receivedCalls: unknown[][] = [];
      const running: Callbacks = {};
      callbacks.running = running;
      const record =
        (name: string) =>
        (...values: unknown[]) =>
          void receivedCalls.push([name, ...values]);
      const names = ['onRegistration', 'onLogin', 'onLogout', 'onDeactivation', 'onAddressAdded'] as const;
      for (const name of names) running[name] = record(name);
      running.onAddressRemoved = record('onAddressRemoved');
      running.onAccountData = record('onAccountData');
      running.onProfile = (userId, profile) => {
        if (profile['displayname'] === 'Jo') record('onProfile')(userId, profile);
      };
      const expected: unknown[][] = [];
      const assertReceived = async (...call: unknown[]) => {
        expected.push(call);
        await eventually(String(call[0]), () => receivedCalls.length >= expected.length);
        assert.deepEqual(receivedCalls, expected);
      };
      const jo = await registerClient('jo');
      await assertReceived('onRegistration', jo.id, false);
      await jo.do('PUT', `/profile/${jo.id}/displayname`, { displayname: 'Jo' });
      await assertReceived('onProfile', jo.id, { displayname: 'Jo' });
      await jo.do('PUT', `/user/${jo.id}/account_data/org.test`, { a: 1 });
      await assertReceived('onAccountData', jo.id, undefined, 'org.test', { a: 1 });
      const login = await server.api('POST', `${clientApi}/login`, {
        body: { type: 'm.login.password', user: 'jo', password: 'correct horse', device_id: 'SECOND' },
      });
      assert.equal(login.status, 200);
      await assertReceived('onLogin', jo.id, 'SECOND', 'm.login.password');
      await server.api('POST', `${clientApi}/logout`, {
        token: String(login.body['access_token']),
        body: {},
      });
      await assertReceived('onLogout', jo.id, 'SECOND');
      const app = await OAuthClient.register(server);
      await app.logIn(new TestBrowser(server), { user: 'jo', deviceId: 'THIRD' });
      await assertReceived('onLogin', jo.id, 'THIRD', 'm.login.oauth');
      const user = `/v2/users/${jo.id}`;
      const address = { medium: 'email', address: 'jo@example.org' };
      await admin.do('PUT', user, { threepids: [address] });
      await assertReceived('onAddressAdded', jo.id, 'email', 'jo@example.org');
      await admin.do('PUT', user, { threepids: [address] });
      await admin.do('PUT', user, { threepids: [] });
      await assertReceived('onAddressRemoved', jo.id, 'email', 'jo@example.org');
      running.onLogout = () => undefined;
      await admin.do('POST', `/v1/deactivate/${jo.id}`, {});
      await assertReceived('onDeactivation', jo.id, true, true);
      await admin.do('PUT', user, { deactivated: false, password: 'correct horse' });
      await assertReceived('onDeactivation', jo.id, false, true);
    });
  });
}
