import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { MappedUser, OidcUser, OidcUserMapping, SamlUser, SamlUserMapping } from 'hearth/module';
import { resources } from '../../test/modules/registering-module.ts';
import { OidcServer } from './test/oidc-server.ts';
import { responseUrl, SamlIdp } from './test/saml-idp.ts';
import { publicUrl, SsoServer, ssoOptions } from './test/sso-server.ts';

const file = join(import.meta.dirname, '../../test/modules/registering-module.ts');
const denial = { errcode: 'ORG_TEST_NO_STAFF', error: 'Only <b>staff</b> may sign in' };
const oidcUsers: OidcUser[] = [];
const samlUsers: SamlUser[] = [];
/** Returns the answer of the modules in place of a mapped user. */
let answer: (() => unknown) | undefined;

const oidcMapping: OidcUserMapping = ({ realm }) => ({
  idOf: ({ sub }) => `${String(realm)} ${String(sub).replace(/\W/g, '')}`,
  map(user) {
    oidcUsers.push(user);
    const { claims } = user;
    return (answer?.() ?? {
      localpart: `oidc-${String(claims['preferred_username'])}`,
      displayName: String(claims['name']),
      emails: ['mapped@mail.example'],
      attributes: { locale: 'de' },
    }) as MappedUser;
  },
});

const samlMapping: SamlUserMapping = ({ realm }) => ({
  async map(user) {
    samlUsers.push(user);
    const [uid] = user.attributes['uid'] ?? [];
    return (answer?.() ?? {
      localpart: `${String(realm)}-${uid}`,
      confirmsLocalpart: uid === 'choosy',
    }) as MappedUser;
  },
});

describe('modules of user_mapping_provider', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-mapping-'));
  const saml = new SamlIdp('https://one.client.example');
  const mapping = (key: string) => ({
    user_mapping_provider: { module: file, config: { key, realm: 'uni' } },
  });
  let idp: OidcServer;
  let hearth: SsoServer;
  before(async () => {
    resources.set('oidc-mapping', oidcMapping as never);
    resources.set('saml-mapping', samlMapping as never);
    resources.set('no-mapping', () => ({}) as never);
    const metadata = join(folder, 'one.xml');
    writeFileSync(metadata, saml.metadata);
    idp = await OidcServer.start(() => [
      {
        client_id: 'hearth',
        client_secret: 'a secret',
        redirect_uris: [`${publicUrl}/_synapse/client/oidc/callback`],
        backchannel_logout_uri: `${publicUrl}/_synapse/client/oidc/backchannel_logout`,
      },
    ]);
    const provider = (idp_id: string, more: object) => ({
      idp_id,
      issuer: idp.issuer,
      client_id: 'hearth',
      client_secret: 'a secret',
      skip_verification: true,
      ...more,
    });
    hearth = await SsoServer.start('sqlite', {
      sso: ssoOptions({
        sso: { client_whitelist: ['https://app.client.example/'] },
        oidc_providers: [
          provider('mapped', { backchannel_logout_enabled: true, ...mapping('oidc-mapping') }),
          provider('usual', {
            user_mapping_provider: {
              module: 'server.handlers.oidc.JinjaOidcMappingProvider',
              config: { localpart_template: 'usual-{{ user.sub }}' },
            },
          }),
        ],
        saml2_config: { sp_config: { metadata: { local: [metadata] } }, ...mapping('saml-mapping') },
      } as never),
    });
  });
  after(async () => {
    await hearth.stop();
    await idp.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const samlLogin = async (uid: string) => {
    const browser = hearth.browser();
    const { headers } = await browser.get(hearth.redirectUrl('saml'));
    const { id, relayState } = saml.read(headers.location ?? '');
    const SAMLResponse = await saml.response({ attributes: { uid: [uid] }, inResponseTo: id });
    return browser.post(responseUrl, { SAMLResponse, RelayState: relayState });
  };
  const whoami = async ({ access_token: token }: Record<string, unknown>) =>
    (await hearth.server.api('GET', '/_matrix/client/v3/account/whoami', { token: String(token) })).status;

  it('[option: oidc_providers[].user_mapping_provider.module] calls the module for the id and the account of a user of OpenID Connect, also at a logout', async () => {
    idp.user = { sub: 'a-1', preferred_username: 'anna', name: 'Anna' };
    const session = await hearth.session(await hearth.login('oidc-mapped'));
    assert.deepEqual([session['user_id'], session['locale']], ['@oidc-anna:test', 'de']);
    assert.equal(await hearth.displayName('@oidc-anna:test'), 'Anna');
    const { provider, claims, accessToken } = oidcUsers.at(-1)!;
    assert.deepEqual([provider, claims['sub']], ['mapped', 'a-1']);
    const info = await fetch(`${idp.issuer}/me`, { headers: { authorization: `Bearer ${accessToken}` } });
    assert.equal(((await info.json()) as { sub: string }).sub, 'a-1', 'the module can use the access token');
    idp.user = { sub: 'a1', preferred_username: 'renamed', name: 'Anna' };
    assert.equal(
      (await hearth.session(await hearth.login('oidc-mapped')))['user_id'],
      '@oidc-anna:test',
      'the module returns the same id for both values of sub',
    );
    const logout_token = await idp.logoutToken('hearth', { sub: 'a--1' });
    const path = `${publicUrl}/_synapse/client/oidc/backchannel_logout`;
    assert.equal((await hearth.browser().post(path, { logout_token })).status, 200);
    assert.equal(await whoami(session), 401);
  });

  it('[option: saml2_config.user_mapping_provider.module] calls the module for the account of a user of SAML, and lets the user confirm the name if the module says so', async () => {
    assert.equal((await hearth.session(await samlLogin('ben')))['user_id'], '@uni-ben:test');
    const { issuer, nameId, attributes } = samlUsers.at(-1)!;
    assert.deepEqual([issuer, attributes], [saml.entityId, { uid: ['ben'] }]);
    assert.match(String(nameId), /^[0-9a-f-]{36}$/);
    assert.match((await samlLogin('choosy')).body, /name="username" value="uni-choosy"/);
    const { body } = await hearth.server.api('GET', '/_matrix/client/v3/profile/@uni-choosy:test');
    assert.equal(body['errcode'], 'M_NOT_FOUND');
  });

  it('shows the text of a mapping module that denies a login, and answers 500 when the module fails', async () => {
    idp.user = { sub: 'c1', preferred_username: 'carl', name: 'Carl' };
    const failures: (() => unknown)[] = [
      () => {
        throw new Error('no directory');
      },
      () => Promise.reject(new Error('no directory')),
      () => 'carl',
      () => ({ localpart: '' }),
      () => ({ localpart: 7 }),
      () => ({ localPart: 'carl' }),
      () => ({ localpart: 'carl', emails: ['a', 5] }),
      () => ({ localpart: 'carl', confirmsLocalpart: 'yes' }),
      () => ({ localpart: 'carl', attributes: { long: 'x'.repeat(5000) } }),
      () => ({ errcode: 'ORG_TEST', error: 'a status that denies nothing', status: 200 }),
    ];
    try {
      answer = () => denial;
      for (const page of [await hearth.login('oidc-mapped'), await samlLogin('carl')]) {
        assert.equal(page.status, 403);
        assert.match(page.body, /Only &lt;b&gt;staff&lt;\/b&gt; may sign in/);
        assert.match(page.body, /ORG_TEST_NO_STAFF/);
      }
      for (const failure of failures) {
        answer = failure;
        const page = await hearth.login('oidc-mapped');
        assert.equal(page.status, 500, String(failure));
        assert.match(page.body, /could not find out which account is yours/);
        assert.doesNotMatch(page.body, /directory/);
      }
      answer = () => ({ localpart: 'no spaces' });
      assert.match((await samlLogin('carl')).body, /The user name cannot be used on this server/);
    } finally {
      answer = undefined;
    }
    const { body } = await hearth.server.api('GET', '/_matrix/client/v3/profile/@oidc-carl:test');
    assert.equal(body['errcode'], 'M_NOT_FOUND');
  });

  it('uses the built-in mapping when the configuration names the class of the reference server that it replaces', async () => {
    idp.user = { sub: 'd1' };
    assert.equal((await hearth.session(await hearth.login('oidc-usual')))['user_id'], '@usual-d1:test');
  });

  it('refuses to start when a module of user_mapping_provider returns no mapper', async () => {
    const saml2_config = { sp_config: {}, ...mapping('no-mapping') };
    await assert.rejects(SsoServer.start('sqlite', { sso: ssoOptions({ saml2_config }) }), {
      name: 'StartFailure',
      message: `the module ${file} of user_mapping_provider has not returned a mapper of users`,
    });
  });
});
