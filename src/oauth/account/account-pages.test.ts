import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import type { TestServer, TestUser } from '../../../test/support/servers/server.ts';
import { ClientIdentity } from '../../../test/support/users/client-device.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import { linkIn, ServerWithMail } from '../../third-party-ids/test/server-with-mail.ts';
import { fieldsOf, locationOf, OAuthClient, TestBrowser, type WebAnswer } from '../test/oauth-client.ts';

const account = '/_synapse/client/account';

forSelectedDatabases(import.meta.url, (open) => {
  describe('the account page', () => {
    let mail: ServerWithMail;
    let server: TestServer;
    let client: OAuthClient;
    let count = 0;
    before(async () => {
      const loginTokens = { enabled: true, require_ui_auth: true, token_timeout: 300_000 };
      mail = await ServerWithMail.start(
        open.kind,
        { login_via_existing_session: loginTokens },
        { oauth: { oauth2: { enabled: true } } },
      );
      server = mail.server;
      client = await OAuthClient.register(server);
    });
    after(() => mail.stop());

    /** Registers a user who is signed in to the account page. */
    async function signedIn(): Promise<{
      user: TestUser;
      name: string;
      browser: TestBrowser;
      page: WebAnswer;
    }> {
      const name = `user${count++}`;
      const user = await server.register(name);
      const browser = new TestBrowser(server);
      const page = await browser.open(locationOf(await browser.signIn(await browser.open(account), name)));
      return { user, name, browser, page };
    }
    /** Sends a form of a page. */
    const send = (
      browser: TestBrowser,
      page: WebAnswer,
      form: string,
      fields: Record<string, string> = {},
    ) => {
      const { form_token = '' } = fieldsOf(page.text);
      return browser.post(`${account}/${form}`, { form_token, ...fields });
    };
    const logIn = async (user: string, password: string) => {
      const body = { type: 'm.login.password', user, password };
      return (await server.api('POST', '/_matrix/client/v3/login', { body })).status;
    };

    it('asks the user of the account page to sign in, with a link to set a forgotten password, and returns to the requested action', async () => {
      const browser = new TestBrowser(server);
      const url = `${account}?action=org.matrix.devices_list`;
      const { name } = await signedIn();
      const signIn = await browser.open(url);
      assert.match(signIn.text, /href="\/_synapse\/client\/password_reset"/);
      const signedInAnswer = await browser.signIn(signIn, name);
      assert.equal(locationOf(signedInAnswer), url);
      assert.match((await browser.open(url)).text, /<h1>Your sessions<\/h1>/);
      const sent = await new TestBrowser(server).post(`${account}/end_device`, {
        form_token: 'x',
        device_id: 'D',
      });
      assert.match(locationOf(sent), /sign_in/);
    });

    it('lists and ends sessions by the action names of the specification, of MSC4191 and without a prefix', async () => {
      const { user, name, browser } = await signedIn();
      const tokens = await client.logIn(browser, { user: name, deviceId: 'PHONE' });
      for (const action of ['org.matrix.devices_list', 'org.matrix.sessions_list', 'sessions_list']) {
        const { text } = await browser.get(`${account}?action=${action}`);
        assert.ok(text.includes(user.deviceId) && text.includes('Element X'), text);
      }
      for (const action of ['device_view', 'device_delete', 'session_view', 'session_end']) {
        for (const name of [`org.matrix.${action}`, action]) {
          const { text } = await browser.get(`${account}?action=${name}&device_id=PHONE`);
          assert.match(text, /Signed in by <strong>Element X<\/strong> \(element\.io\)/);
        }
      }
      assert.equal(
        (await browser.get(`${account}?action=org.matrix.device_view&device_id=OTHER`)).status,
        404,
      );
      const page = await browser.get(`${account}?action=org.matrix.device_delete&device_id=PHONE`);
      const withWrongFormToken = await browser.post(`${account}/end_device`, {
        form_token: 'guess',
        device_id: 'PHONE',
      });
      assert.equal(withWrongFormToken.status, 403);
      assert.deepEqual(await client.whoami(tokens['access_token']), [user.userId, 'PHONE']);
      assert.match(
        (await send(browser, page, 'end_device', { device_id: 'PHONE' })).text,
        /The session has ended/,
      );
      assert.deepEqual(await client.whoami(tokens['access_token']), [401, 'M_UNKNOWN_TOKEN']);
    });

    it('changes the display name of the user on the account page', async () => {
      const { user, browser, page } = await signedIn();
      await send(browser, page, 'display_name', { display_name: 'Alice <b>' });
      const profile = await server.api('GET', `/_matrix/client/v3/profile/${user.userId}`);
      assert.equal(profile.body['displayname'], 'Alice <b>');
      assert.match((await browser.get(account)).text, /value="Alice &lt;b&gt;"/);
    });

    it('changes the password on the account page, signs the user out of other browsers, and ends sessions of apps if the user wants it', async () => {
      const { user, name, browser, page } = await signedIn();
      const other = new TestBrowser(server);
      await other.signIn(await other.open(account), name);
      const wrong = await send(browser, page, 'password', { new_password: 'a', new_password_again: 'b' });
      assert.match(wrong.text, /role="alert">The passwords are not the same/);
      const fields = { new_password: 'new password', new_password_again: 'new password' };
      assert.equal((await send(browser, page, 'password', fields)).status, 303);
      assert.deepEqual([await logIn(name, 'correct horse'), await logIn(name, 'new password')], [403, 200]);
      assert.deepEqual(await client.whoami(user.token), [user.userId, user.deviceId]);
      // A browser that is signed in to the account page can do all that the password allows, so its session
      // ends with the old password.
      assert.match((await other.open(account)).text, /<h1>Sign in<\/h1>/);
      await send(browser, await browser.get(account), 'password', { ...fields, logout_devices: 'yes' });
      assert.deepEqual(await client.whoami(user.token), [401, 'M_UNKNOWN_TOKEN']);
      assert.match((await other.open(account)).text, /<h1>Sign in<\/h1>/);
      assert.match((await browser.open(account)).text, /<h1>Your account<\/h1>/);
    });

    it('adds a mail address after the user has opened the link in a mail, and removes it', async () => {
      const { user, browser, page } = await signedIn();
      const addresses = async () => {
        const { body } = await server.api('GET', '/_matrix/client/v3/account/3pid', { token: user.token });
        return (body['threepids'] as { address: string }[]).map(({ address }) => address);
      };
      const number = mail.mailServer.received.length;
      const waiting = await send(browser, page, 'add_address', { email: 'user@example.org' });
      const early = await browser.post(`${account}/confirm_address`, fieldsOf(waiting.text));
      assert.match(early.text, /has not been opened yet/);
      const { pathname, search } = new URL(linkIn(await mail.mailServer.mail(number)));
      await fetch(server.baseUrl + pathname + search);
      const added = await browser.post(`${account}/confirm_address`, fieldsOf(early.text));
      assert.match(added.text, /The address has been added/);
      assert.deepEqual(await addresses(), ['user@example.org']);
      await send(browser, added, 'remove_address', { medium: 'email', address: 'user@example.org' });
      assert.deepEqual(await addresses(), []);
    });

    it('asks the user to sign in again for dangerous changes 10 minutes after the sign-in', async () => {
      const { name, browser } = await signedIn();
      await mail.clock.advance(600_000);
      assert.match((await browser.get(account)).text, /<h1>Your account<\/h1>/);
      for (const action of ['cross_signing_reset', 'account_deactivate']) {
        const url = `${account}?action=org.matrix.${action}`;
        const redirect = await browser.get(url);
        assert.match(locationOf(redirect), /sign_in\?continue=.*&user=%40user/);
        const signedInAnswer = await browser.signIn(await browser.open(url), name);
        assert.equal(locationOf(signedInAnswer), url);
        await mail.clock.advance(600_000);
      }
      const fields = {
        new_password: 'x',
        new_password_again: 'x',
        confirmed_user_id: '',
        email: 'a@example.org',
      };
      for (const form of ['password', 'deactivate', 'cross_signing_reset', 'add_address', 'remove_address']) {
        assert.match(
          locationOf(await send(browser, await browser.get(account), form, fields)),
          /sign_in/,
          form,
        );
      }
    });

    it('deactivates the account after the user has entered the user id', async () => {
      const { user, name, browser } = await signedIn();
      const page = await browser.get(`${account}?action=org.matrix.account_deactivate`);
      const wrong = await send(browser, page, 'deactivate', { confirmed_user_id: '@other:test' });
      assert.match(wrong.text, /role="alert"/);
      assert.equal(await logIn(name, 'correct horse'), 200);
      const done = await send(browser, page, 'deactivate', { confirmed_user_id: user.userId });
      assert.match(done.text, /Your account is deactivated/);
      assert.equal(await logIn(name, 'correct horse'), 403);
      assert.match((await browser.open(account)).text, /<h1>Sign in<\/h1>/);
    });

    it('lets a session of OAuth 2.0 replace cross-signing keys once, after a confirmation by m.oauth', async () => {
      const { user, name, browser } = await signedIn();
      const { access_token: token } = await client.logIn(browser, { user: name, deviceId: 'PHONE' });
      const upload = (auth?: object) => {
        const identity = new ClientIdentity(user.userId);
        const body = {
          master_key: identity.masterKey(),
          self_signing_key: identity.selfSigningKey(),
          user_signing_key: identity.userSigningKey(),
          ...(auth && { auth }),
        };
        return server.api('POST', '/_matrix/client/v3/keys/device_signing/upload', { token: token!, body });
      };
      assert.equal((await upload()).status, 200, 'the first keys need no confirmation');
      const challenge = await upload();
      assert.equal(challenge.status, 401);
      const url = 'https://test/_synapse/client/account?action=org.matrix.cross_signing_reset';
      assert.deepEqual(challenge.body['flows'], [
        { stages: ['m.oauth'] },
        { stages: ['org.matrix.cross_signing_reset'] },
      ]);
      assert.deepEqual((challenge.body['params'] as Record<string, unknown>)['m.oauth'], { url });
      const { session } = challenge.body;
      assert.equal((await upload({ session })).status, 401);
      const page = await browser.get(url);
      assert.match((await send(browser, page, 'cross_signing_reset')).text, /Go back to the app/);
      const replaced = await upload({ session });
      assert.equal(replaced.status, 200, replaced.raw);
      assert.equal((await upload({ session })).status, 401);
    });

    it('signs the user out of all browsers when the password is changed by the API, even if sessions stay', async () => {
      const { user, browser, name } = await signedIn();
      const auth = { type: 'm.login.password', user: name, password: 'correct horse' };
      const body = { new_password: 'new password', logout_devices: false, auth };
      const path = '/_matrix/client/v3/account/password';
      const changed = await server.api('POST', path, { token: user.token, body });
      assert.equal(changed.status, 200, changed.raw);
      assert.deepEqual(await client.whoami(user.token), [user.userId, user.deviceId]);
      assert.match((await browser.open(account)).text, /<h1>Sign in<\/h1>/);
    });

    it('lets one of two concurrent uploads replace cross-signing keys after a confirmation, which a refused upload does not use up', async () => {
      const { user, name, browser } = await signedIn();
      const { access_token: token } = await client.logIn(browser, { user: name, deviceId: 'PHONE' });
      const upload = (user_id = user.userId) => {
        const body = new ClientIdentity(user_id).keys();
        return server.api('POST', '/_matrix/client/v3/keys/device_signing/upload', { token: token!, body });
      };
      assert.equal((await upload()).status, 200);
      const page = await browser.get(`${account}?action=org.matrix.cross_signing_reset`);
      await send(browser, page, 'cross_signing_reset');
      assert.equal((await upload('@other:test')).status, 400);
      const statuses = (await Promise.all([upload(), upload()])).map(({ status }) => status);
      assert.deepEqual(statuses.toSorted(), [200, 401]);
    });

    it('treats a device of OAuth 2.0 as an ordinary session after a password login on it, and as OAuth 2.0 again after a login by OAuth 2.0', async () => {
      const { name, browser } = await signedIn();
      const first = await client.logIn(browser, { user: name, deviceId: 'BOTH' });
      const exchanged = await client.refresh(first['refresh_token']);
      await client.whoami(exchanged.json['access_token']);
      const body = { type: 'm.login.password', user: name, password: 'correct horse', device_id: 'BOTH' };
      const login = await server.api('POST', '/_matrix/client/v3/login', {
        body: { ...body, refresh_token: true },
      });
      const { refresh_token } = login.body;
      const renewed = await server.api('POST', '/_matrix/client/v3/refresh', { body: { refresh_token } });
      assert.equal(renewed.status, 200, renewed.raw);
      const token = String(renewed.body['access_token']);
      assert.equal((await client.refresh(first['refresh_token'])).json['error'], 'invalid_grant');
      const path = '/_matrix/client/v3/devices/BOTH';
      const challenge = await server.api('DELETE', path, { token, body: {} });
      assert.deepEqual(
        [challenge.status, challenge.body['flows']],
        [401, [{ stages: ['m.login.password'] }]],
      );
      const { access_token: last } = await client.logIn(browser, { user: name, deviceId: 'BOTH' });
      assert.equal((await server.api('DELETE', path, { token: last!, body: {} })).status, 404);
    });

    it('shows administrators the device of a session of OAuth 2.0, and ends the session when the device is deleted', async () => {
      const admin = await registerAdmin(server);
      const { user, name, browser } = await signedIn();
      const tokens = await client.logIn(browser, { user: name, deviceId: 'SEEN' });
      const path = `/_synapse/admin/v2/users/${user.userId}/devices/SEEN`;
      const { body } = await server.api('GET', path, { token: admin.token });
      assert.deepEqual([body['device_id'], body['display_name']], ['SEEN', 'Element X']);
      await server.api('DELETE', path, { token: admin.token });
      assert.deepEqual(await client.whoami(tokens['access_token']), [401, 'M_UNKNOWN_TOKEN']);
      assert.equal((await client.refresh(tokens['refresh_token'])).json['error'], 'invalid_grant');
    });

    it('reports in GET /capabilities that sessions of OAuth 2.0 cannot change the password or addresses, or issue login tokens', async () => {
      const { user, name, browser } = await signedIn();
      const { access_token: token } = await client.logIn(browser, { user: name, deviceId: 'PHONE' });
      const enabled = async (token: string) => {
        const { body } = await server.api('GET', '/_matrix/client/v3/capabilities', { token });
        const found = body['capabilities'] as Record<string, { enabled: boolean }>;
        const names = ['m.change_password', 'm.3pid_changes', 'm.get_login_token'];
        return names.map((name) => found[name]!.enabled);
      };
      assert.deepEqual(
        [await enabled(token!), await enabled(user.token)],
        [
          [false, false, false],
          [true, true, true],
        ],
      );
    });

    it('answers 404 M_UNRECOGNIZED when a session of OAuth 2.0 deletes devices, changes the password or deactivates the account by the API', async () => {
      const { user, name, browser } = await signedIn();
      const { access_token: token } = await client.logIn(browser, { user: name, deviceId: 'PHONE' });
      for (const [method, path, body] of [
        ['DELETE', `/devices/${user.deviceId}`, {}],
        ['POST', '/delete_devices', { devices: [user.deviceId] }],
        ['POST', '/account/password', { new_password: 'x' }],
        ['POST', '/account/deactivate', {}],
      ] as const) {
        const answer = await server.api(method, `/_matrix/client/v3${path}`, { token: token!, body });
        assert.deepEqual([answer.status, answer.body['errcode']], [404, 'M_UNRECOGNIZED'], path);
      }
    });
  });
});
