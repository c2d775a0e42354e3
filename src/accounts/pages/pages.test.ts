import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  AccountsServer,
  type AccountsServerOptions,
  type LoggedInUser,
  passwordLogin,
  testAccountOptions,
} from '../../../test/support/servers/accounts-server.ts';
import { Pages, pageTemplates } from '../../kernel/pages/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { Templates } from '../../kernel/templates/index.ts';
import type { LoginType } from '../login/login.ts';
import { accountPageRoutes, accountTemplates } from './account-pages.ts';

const pages = new Pages(new Templates({ folders: [accountTemplates, pageTemplates] }));

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  afterEach(() => server.stop());
  const start = async (setup: AccountsServerOptions = {}) => {
    const options = { ...testAccountOptions, ...setup.options };
    server = await AccountsServer.start(open, {
      ...setup,
      routes: (slice) => accountPageRoutes({ slice, pages, randomness: systemRandomness }, options),
    });
  };
  const register = (body: Record<string, unknown>) => server.call('POST', '/register', { body });
  const get = (path: string) => server.page(path);
  const send = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
    server.page(path, { method: 'POST', body: new URLSearchParams(fields), headers });

  describe('fallback pages of interactive authentication', () => {
    const fallback = (stage: string) => `/_matrix/client/v3/auth/${stage}/fallback/web`;

    it('completes the stage of a registration token on a page, and reports it to the window that opened the page', async () => {
      await start({ options: { registration_requires_token: true } });
      await server.slice.registrationTokens.create({ token: 'welcome', uses_allowed: 1 });
      const { session } = (await register({ username: 'alice', password: 'password' })).body as {
        session: string;
      };
      const path = fallback('m.login.registration_token');
      const page = await get(`${path}?session=${session}`);
      assert.equal(page.status, 200);
      assert.ok(page.body.includes(`name="session" value="${session}"`), page.body);
      assert.ok(page.body.includes(`action="${path}"`), page.body);

      const wrong = await send(path, { session, token: 'guess<b>' });
      assert.equal(wrong.status, 401);
      assert.match(wrong.body, /role="alert">Invalid registration token/);
      const done = await send(path, { session, token: 'welcome' });
      assert.equal(done.status, 200);
      assert.match(done.body, /postMessage\("authDone", "\*"\)/);
      const nonce = /<script nonce="(\w+)">/.exec(done.body)?.[1];
      assert.ok(done.headers.get('content-security-policy')?.includes(`script-src 'nonce-${nonce}'`));

      const { pending } = (await server.slice.registrationTokens.find('welcome'))!;
      assert.equal(pending, 1);
      const finished = await register({ auth: { type: 'm.login.dummy', session } });
      assert.equal(finished.body['user_id'], '@alice:test');
      assert.equal((await get(`${path}?session=${session}`)).status, 403);
    });

    it('accepts on the password page only the password of the user who began the session', async () => {
      await start();
      const alice = await server.register('alice');
      await server.register('bob', { password: "bob's password" });
      const { token, deviceId } = await server.login('alice');
      const path = `/devices/${deviceId}`;
      const { session } = (await server.call('DELETE', path, { token, body: {} })).body as {
        session: string;
      };
      const form = fallback('m.login.password');
      assert.match((await get(`${form}?session=${session}`)).body, /value="@alice:test"/);
      for (const fields of [{ password: 'wrong' }, { username: '@bob:test', password: "bob's password" }]) {
        assert.equal((await send(form, { session, ...fields })).status, 403);
      }
      assert.equal((await server.call('DELETE', path, { token, body: { auth: { session } } })).status, 401);
      assert.equal((await send(form, { session, password: 'password' })).status, 200);
      const other = await server.login('bob', passwordLogin('bob', "bob's password"));
      const stolen = await server.call('DELETE', path, { token: other.token, body: { auth: { session } } });
      assert.deepEqual([stolen.status, stolen.body['errcode']], [403, 'M_FORBIDDEN']);
      const otherDevicePath = `/devices/${alice.deviceId}`;
      const forOtherDevice = await server.call('DELETE', otherDevicePath, {
        token,
        body: { auth: { session } },
      });
      assert.deepEqual([forOtherDevice.status, forOtherDevice.body['errcode']], [403, 'M_FORBIDDEN']);
      assert.equal((await server.call('DELETE', path, { token, body: { auth: { session } } })).status, 200);
    });

    it('responds 404 to unknown stages, 400 without a session, and 403 to unknown and expired sessions', async () => {
      await start();
      const { session } = (await register({})).body as { session: string };
      assert.equal((await get(`${fallback('m.login.wizard')}?session=${session}`)).status, 404);
      assert.equal((await get(fallback('m.login.dummy'))).status, 400);
      assert.equal((await get(`${fallback('m.login.dummy')}?session=guess`)).status, 403);
      assert.equal((await get(`${fallback('m.login.dummy')}?session=${session}`)).status, 200);
      server.clock.advance(25 * 3_600_000);
      assert.equal((await get(`${fallback('m.login.dummy')}?session=${session}`)).status, 403);
      assert.equal((await send(fallback('m.login.dummy'), { session })).status, 403);
    });

    it('completes the dummy stage on a page below /_matrix/client/r0', async () => {
      await start();
      const { session } = (await register({ username: 'alice', password: 'password' })).body as {
        session: string;
      };
      const path = '/_matrix/client/r0/auth/m.login.dummy/fallback/web';
      assert.equal((await send(path, { session })).status, 200);
      assert.equal((await register({ auth: { session } })).body['user_id'], '@alice:test');
    });
  });

  describe('registration page', () => {
    const path = '/_synapse/client/register';
    const form = { username: 'alice', password: 'password', password_again: 'password' };

    it('creates an account from the registration form without logging in', async () => {
      await start();
      const page = await get(path);
      assert.equal(page.status, 200);
      assert.match(page.body, /autocomplete="new-password"/);
      assert.doesNotMatch(page.body, /name="token"/);
      const begun = await send(path, form);
      assert.equal(begun.status, 303);
      const next = begun.headers.get('location')!;
      assert.match(next, /^register\/continue\?session=\w+$/);
      const done = await get(`/_synapse/client/${next}`);
      assert.equal(done.status, 200);
      assert.match(done.body, /@alice:test/);
      const reloaded = await get(`/_synapse/client/${next}`);
      assert.match(reloaded.body, /@alice:test/);
      const { token } = await server.login('alice');
      const { devices } = (await server.call('GET', '/devices', { token })).body as { devices: unknown[] };
      assert.equal(devices.length, 1);
    });

    it('shows a field for the registration token, and shows errors without repeating the password', async () => {
      await start({
        options: {
          registration_requires_token: true,
          enable_registration_without_verification: false,
          password_config: {
            enabled: true,
            localdb_enabled: true,
            pepper: null,
            policy: {
              enabled: true,
              minimum_length: 8,
              require_digit: true,
              require_lowercase: false,
              require_symbol: false,
              require_uppercase: false,
            },
          },
        },
      });
      await server.slice.registrationTokens.create({ token: 'welcome', uses_allowed: 1 });
      const page = await get(`${path}?token=welcome`);
      assert.match(page.body, /name="token" value="welcome"/);
      assert.match(page.body, /at least 8 characters, a digit/);
      const validForm = { ...form, password: 'password1', password_again: 'password1', token: 'welcome' };
      for (const [change, status, text] of [
        [{ password_again: 'other' }, 400, /The passwords are not the same/],
        [{ password: 'password', password_again: 'password' }, 400, /must contain a digit/],
        [{ username: 'a b' }, 400, /user name/i],
        [{ token: 'guess' }, 401, /Invalid registration token/],
      ] as const) {
        const refused = await send(path, { ...validForm, ...change });
        assert.equal(refused.status, status);
        assert.match(refused.body, text);
        assert.doesNotMatch(refused.body, /password1/);
      }
      const begun = await send(path, validForm);
      assert.equal(begun.status, 303, begun.body);
      assert.match((await get(`/_synapse/client/${begun.headers.get('location')}`)).body, /@alice:test/);
      const afterLastUse = await send(path, { ...validForm, username: 'bob' });
      assert.deepEqual(
        [afterLastUse.status, /Invalid registration token/.test(afterLastUse.body)],
        [401, true],
      );
      const taken = await send(path, validForm);
      assert.match(taken.body, /This user name is taken/);
    });

    it('responds 403 when registration is closed, and to forms from pages of other origins', async () => {
      await start({ options: { enable_registration: false } });
      const closed = await get(path);
      assert.deepEqual([closed.status, /Registration is closed/.test(closed.body)], [403, true]);
      assert.equal((await send(path, form)).status, 403);
      await server.stop();
      await start();
      for (const site of ['cross-site', 'same-site']) {
        assert.equal((await send(path, form, { 'sec-fetch-site': site })).status, 403);
      }
      assert.equal((await send(path, form, { 'sec-fetch-site': 'same-origin' })).status, 303);
    });
  });

  describe('login page', () => {
    const path = '/_matrix/static/client/login/';
    let alice: LoggedInUser;
    const startWithAlice = async () => {
      await start();
      alice = await server.register('alice');
    };

    it('logs in with the device id that the client names, and passes the login response to the client', async () => {
      await startWithAlice();
      const page = await get(`${path}?device_id=PHONE&initial_device_display_name=My%20%3Cphone%3E`);
      assert.match(page.body, /name="device_id" value="PHONE"/);
      assert.match(page.body, /value="My &lt;phone&gt;"/);
      assert.match(page.headers.get('content-security-policy')!, /^default-src 'none'/);
      const fields = { username: 'alice', password: 'password', device_id: 'PHONE' };
      const done = await send(path, { ...fields, initial_device_display_name: 'My <phone>' });
      const encoded = /data-response="([^"]+)"/.exec(done.body)?.[1] ?? '';
      const response = JSON.parse(encoded.replaceAll('&quot;', '"'));
      assert.deepEqual([response.user_id, response.device_id], [alice.userId, 'PHONE']);
      const { body } = await server.call('GET', '/devices/PHONE', { token: response.access_token });
      assert.equal(body['display_name'], 'My <phone>');
    });

    it('returns a refresh token to a client that requests one by refresh_token=true', async () => {
      await startWithAlice();
      const page = await get(`${path}?refresh_token=true`);
      assert.match(page.body, /name="refresh_token" value="true"/);
      const tokenOf = async (fields: Record<string, string>) => {
        const done = await send(path, { username: 'alice', password: 'password', ...fields });
        const encoded = /data-response="([^"]+)"/.exec(done.body)?.[1] ?? '';
        return typeof JSON.parse(encoded.replaceAll('&quot;', '"')).refresh_token;
      };
      assert.equal(await tokenOf({ refresh_token: 'true' }), 'string');
      assert.equal(await tokenOf({}), 'undefined');
    });

    it('keeps the parameters of the client in the links to identity providers, which lead back to the page', async () => {
      const providers: LoginType = {
        type: 'm.login.sso',
        isOffered: true,
        flow: () => ({ identity_providers: [{ id: 'oidc', name: 'Company' }] }),
        login: () => assert.fail('nobody logs in'),
      };
      await start({ extensions: () => ({ loginTypes: [providers] }) });
      /** Returns the path and the query of the page that the provider's link leads back to. */
      const returnOf = async (query: string) => {
        const { body } = await get(path + query);
        const link = /href="([^"]+\/login\/sso\/redirect\/oidc\?[^"]+)"/.exec(body)?.[1] ?? '';
        const { searchParams } = new URL(link.replaceAll('&amp;', '&'), 'https://test');
        const { pathname, searchParams: kept } = new URL(searchParams.get('redirectUrl') ?? '');
        return [pathname, Object.fromEntries(kept)];
      };
      const device = { device_id: 'PHONE', initial_device_display_name: 'My <phone>', refresh_token: 'true' };
      const query = `?${new URLSearchParams({ ...device, other: '1' })}`;
      assert.deepEqual(await returnOf(query), [path, device]);
      assert.deepEqual(await returnOf(''), [path, {}]);
    });

    it('reports a wrong password without repeating it, and rejects forms from other sites with 403', async () => {
      await startWithAlice();
      const fields = { username: 'alice', password: 'guess', device_id: 'PHONE' };
      const wrong = await send(path, fields);
      assert.equal(wrong.status, 403);
      assert.match(wrong.body, /role="alert">Wrong user name or password/);
      assert.match(wrong.body, /name="device_id" value="PHONE"/);
      assert.doesNotMatch(wrong.body, /guess/);
      const fromOtherSite = await send(
        path,
        { ...fields, password: 'password' },
        { 'sec-fetch-site': 'cross-site' },
      );
      assert.equal(fromOtherSite.status, 403);
      assert.equal(
        (await send('/_matrix/static/client/login', { ...fields, password: 'password' })).status,
        200,
      );
    });
  });
});
