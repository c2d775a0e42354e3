import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forServerDatabases } from '../../../test/support/databases/databases.ts';
import { CasServer } from '../../sso/test/cas-server.ts';
import { publicUrl, SsoServer, ssoOptions } from '../../sso/test/sso-server.ts';
import { challengeOf, elementX, fieldsOf, postJson, verifier } from '../test/oauth-client.ts';

forServerDatabases(import.meta.url, (open) => {
  describe('logins by OAuth 2.0 through an identity provider', () => {
    let cas: CasServer;
    let hearth: SsoServer;
    before(async () => {
      cas = await CasServer.start();
      const cas_config = { enabled: true, idp_name: 'University', server_url: cas.url, protocol_version: 3 };
      hearth = await SsoServer.start(open.kind, {
        oauth: { oauth2: { enabled: true } },
        accounts: { password_config: { enabled: false } },
        sso: ssoOptions({ cas_config }),
      });
    });
    after(async () => {
      await hearth.stop();
      await cas.stop();
    });

    it('lead to the provider and back to the page on which the user allows the login', async () => {
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

    it('cannot be begun by another site', async () => {
      const victim = hearth.browser();
      const page = await victim.get(`${publicUrl}/_synapse/client/oauth2/sign_in/cas?mark=guess`);
      assert.equal(page.status, 403);
      assert.ok(!victim.visited.some((url) => url.startsWith(cas.url)));
    });

    it('are preferred to m.login.sso by clients that know both, where no password is possible', async () => {
      const { body } = await hearth.server.api('GET', '/_matrix/client/v3/login');
      const flow = (body['flows'] as Record<string, unknown>[]).find(({ type }) => type === 'm.login.sso');
      assert.equal(flow?.['oauth_aware_preferred'], true);
    });
  });
});
