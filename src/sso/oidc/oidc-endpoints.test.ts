import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { type OidcFixture, startOidcFixture } from '../test/oidc-fixture.ts';
import type { OidcServer } from '../test/oidc-server.ts';
import type { SsoServer } from '../test/sso-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('requests to providers of OpenID Connect', () => {
    let fixture: OidcFixture;
    let idp: OidcServer;
    let hearth: SsoServer;
    before(async () => {
      fixture = await startOidcFixture(open.kind);
      ({ idp, hearth } = fixture);
    });
    after(() => fixture.stop());
    beforeEach(() => fixture.reset());

    it('[option: oidc_providers[].pkce_method] [option: oidc_providers[].client_auth_method] [option: oidc_providers[].additional_authorization_parameters] [option: oidc_providers[].passthrough_authorization_parameters] sends PKCE, secrets and parameters as configured', async () => {
      idp.user = { sub: 'u3', preferred_username: 'carol' };
      await hearth
        .browser()
        .get(hearth.redirectUrl('oidc-main', undefined, { login_hint: 'carol', prompt: 'none' }));
      const [authorization] = idp.authorizations;
      assert.deepEqual(
        ['login_hint', 'acr_values', 'prompt', 'code_challenge_method', 'scope'].map((name) =>
          authorization!.get(name),
        ),
        ['carol', 'phr', null, 'S256', 'openid profile email'],
      );
      assert.match(idp.tokenRequests[0]!.authorization ?? '', /^Basic /);
      assert.match(idp.tokenRequests[0]!.body, /code_verifier=/);
      await hearth.login('oidc-userinfo');
      assert.equal(idp.authorizations.at(-1)!.get('code_challenge'), null);
      assert.equal(idp.tokenRequests.at(-1)!.authorization, undefined);
    });

    it('[option: oidc_providers[].user_profile_method] reads claims from the userinfo endpoint, and refuses claims about another user', async () => {
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

    it('[option: oidc_providers[].authorization_endpoint] [option: oidc_providers[].token_endpoint] [option: oidc_providers[].userinfo_endpoint] [option: oidc_providers[].user_mapping_provider.config.subject_claim] logs in without discovery and without the scope openid', async () => {
      idp.user = { sub: 'u5' };
      idp.replace = (path) => (path === '/me' ? { sub: 'u5', email: 'erin@mail.example' } : undefined);
      const page = await hearth.login('oidc-plain');
      assert.equal((await hearth.session(page))['user_id'], '@erin:test');
      const [authorization] = idp.authorizations;
      assert.deepEqual(
        [
          authorization!.get('scope'),
          authorization!.get('nonce'),
          authorization!.get('code_challenge_method'),
        ],
        ['read_user', null, 'S256'],
      );
    });
  });
});
