import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { CasServer } from '../test/cas-server.ts';
import { publicUrl, SsoServer, ssoOptions } from '../test/sso-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('m.login.sso as a stage of interactive authentication', () => {
    let cas: CasServer;
    let hearth: SsoServer;
    before(async () => {
      cas = await CasServer.start();
      hearth = await SsoServer.start(open.kind, {
        sso: ssoOptions({
          sso: { client_whitelist: ['https://app.client.example/'] },
          cas_config: { enabled: true, server_url: cas.url, idp_name: 'University' },
        }),
      });
    });
    after(async () => {
      await hearth.stop();
      await cas.stop();
    });
    const logIn = async (name: string) => {
      cas.user = { name };
      return hearth.session(await hearth.login('cas'));
    };
    const deleteDevice = (session: Record<string, unknown>, auth?: object) =>
      hearth.server.api('DELETE', `/_matrix/client/v3/devices/${session['device_id']}`, {
        body: auth === undefined ? {} : { auth },
        token: String(session['access_token']),
      } as never);
    const fallback = (session: unknown) =>
      `${publicUrl}/_matrix/client/v3/auth/m.login.sso/fallback/web?session=${session}`;
    const linkIn = (body: string) =>
      `${publicUrl}${/class="button" href="([^"]+)"/.exec(body)![1]!.replaceAll('&amp;', '&')}`;
    const sameOrigin = { 'sec-fetch-site': 'same-origin' };

    it('completes the stage m.login.sso by a login at the provider of the account', async () => {
      const alice = await logIn('alice');
      const { status, body } = await deleteDevice(alice);
      assert.equal(status, 401);
      assert.ok((body['flows'] as { stages: string[] }[]).some(({ stages }) => stages[0] === 'm.login.sso'));
      const browser = hearth.browser();
      const page = await browser.get(fallback(body['session']));
      assert.match(page.body, /Confirm that it is you.*Continue with University/s);
      assert.equal(
        (await deleteDevice(alice, { type: 'm.login.sso', session: body['session'] })).status,
        401,
      );
      const done = await browser.get(linkIn(page.body), sameOrigin);
      assert.match(done.body, /postMessage\("authDone", "\*"\)/);
      assert.equal(
        (await deleteDevice(alice, { type: 'm.login.sso', session: body['session'] })).status,
        200,
      );
    });

    it('refuses to complete m.login.sso by another user, by a user without an account, and by a link on another site', async () => {
      const bob = await logIn('bob');
      const { body } = await deleteDevice(bob);
      const browser = hearth.browser();
      const link = linkIn((await browser.get(fallback(body['session']))).body);
      assert.equal((await browser.get(link, { 'sec-fetch-site': 'cross-site' })).status, 403);
      await logIn('mallory');
      const wrong = await browser.get(link, sameOrigin);
      assert.equal(wrong.status, 403);
      assert.match(wrong.body, /Wrong account.*@bob:test/s);
      cas.user = { name: 'stranger' };
      assert.equal((await browser.get(link, sameOrigin)).status, 403, 'creates no account');
      const missingProfile = await hearth.server.api('GET', '/_matrix/client/v3/profile/@stranger:test');
      assert.equal(missingProfile.status, 404);
      assert.equal((await deleteDevice(bob, { session: body['session'] })).status, 401);
    });

    it('does not offer m.login.sso to users without a linked provider', async () => {
      const carol = await hearth.server.register('carol');
      const { body } = await deleteDevice({ device_id: carol.deviceId, access_token: carol.token });
      const flows = body['flows'] as { stages: string[] }[];
      assert.ok(flows.every(({ stages }) => !stages.includes('m.login.sso')));
    });
  });

  describe('terms for new users of single sign-on', () => {
    it('creates the account of a new user only after the terms are accepted', async () => {
      const cas = await CasServer.start();
      const hearth = await SsoServer.start(open.kind, {
        accounts: { user_consent: { version: '1.0', require_at_registration: true } },
        sso: ssoOptions({
          sso: { client_whitelist: ['https://app.client.example/'] },
          cas_config: { enabled: true, server_url: cas.url },
        }),
      } as never);
      try {
        cas.user = { name: 'dora' };
        const browser = hearth.browser();
        const form = await hearth.login('cas', browser);
        assert.match(form.body, /@dora:test.*name="accepted_version" value="1\.0"/s);
        assert.equal((await browser.post(form.url, {})).status, 400);
        assert.equal((await hearth.server.api('GET', '/_matrix/client/v3/profile/@dora:test')).status, 404);
        const done = await browser.post(form.url, { accepted_version: '1.0' });
        assert.equal((await hearth.session(done))['user_id'], '@dora:test');
      } finally {
        await hearth.stop();
        await cas.stop();
      }
    });
  });
});
