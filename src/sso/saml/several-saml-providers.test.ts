import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type LoopbackServer, serveOnLoopback } from '../../../test/support/network/loopback.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import { createSamlFixture, trustedClient } from '../test/saml-fixture.ts';
import { responseUrl, type SamlIdp } from '../test/saml-idp.ts';
import { clientUrl, SsoServer, ssoOptions } from '../test/sso-server.ts';

const { idp, second, file, localMetadata, federationMetadata } = createSamlFixture();

describe('several identity providers of SAML', () => {
  let source: LoopbackServer;
  before(async () => {
    source = await serveOnLoopback((_request, response) => response.end(second.metadata));
  });
  after(() => source.close());
  const start = (more: object) =>
    SsoServer.start('sqlite', { sso: ssoOptions({ sso: trustedClient, saml2_config: more }) });

  it('[option: saml2_config.sp_config.metadata.remote] [option: saml2_config.user_mapping_provider.config.mxid_source_attribute] [option: saml2_config.user_mapping_provider.config.mxid_mapping] asks the user to choose one of several identity providers, and replaces characters that user ids cannot contain by dots', async () => {
    const metadata = { local: [localMetadata], remote: [{ url: `http://127.0.0.1:${source.port}/` }] };
    const config = { mxid_source_attribute: 'eppn', mxid_mapping: 'dotreplace' };
    const hearth = await start({ sp_config: { metadata }, user_mapping_provider: { config } });
    try {
      const browser = hearth.browser();
      const picker = await browser.get(hearth.redirectUrl('saml'));
      assert.match(
        picker.body,
        /idp=https%3A%2F%2Fone\.client\.example".*idp=https%3A%2F%2Ftwo\.client\.example"/s,
      );
      const { headers } = await browser.get(`${picker.url}&idp=${encodeURIComponent(second.entityId)}`);
      assert.ok(headers.location?.startsWith(`${second.entityId}/sso?`), headers.location);
      const { id, relayState } = second.read(headers.location ?? '');
      const attributes = { uid: ['x'], eppn: ['_Dora@Uni.example'] };
      const wrong = await idp.response({ attributes, inResponseTo: id });
      const right = await second.response({ attributes, inResponseTo: id });
      const page = await browser.post(responseUrl, { SAMLResponse: right, RelayState: relayState });
      assert.equal((await hearth.session(page))['user_id'], '@dora.uni.example:test');
      assert.equal(
        (await browser.post(responseUrl, { SAMLResponse: wrong, RelayState: relayState })).status,
        400,
      );
    } finally {
      await hearth.stop();
    }
  });

  it('separates users who have the same uid at several SAML identity providers, and keeps the accounts of the first provider for its users, also when the configuration later names only another provider', async () => {
    const metadata = file('growing.xml', idp.metadata);
    const hearth = await start({
      sp_config: { metadata: { local: [metadata] }, service: { sp: { allow_unsolicited: true } } },
      grandfathered_mxid_source_attribute: '',
    });
    const pageOf = async (provider: SamlIdp, uid: string) => {
      const SAMLResponse = await provider.response({ attributes: { uid: [uid] } });
      return hearth.browser().post(responseUrl, { SAMLResponse, RelayState: clientUrl });
    };
    const userAt = async (provider: SamlIdp, uid: string) =>
      (await hearth.session(await pageOf(provider, uid)))['user_id'];
    const admin = await registerAdmin(hearth.server);
    const setExternalId = async (name: string, external_id: string) => {
      const path = `/_synapse/admin/v2/users/@${name}:test`;
      const body = { external_ids: [{ auth_provider: 'saml', external_id }] };
      const { status, raw } = await hearth.server.api('PUT', path, { token: admin.token, body });
      assert.ok(status === 200 || status === 201, raw);
    };
    try {
      for (const uid of ['zoe', 'early']) assert.equal(await userAt(idp, uid), `@${uid}:test`);
      await setExternalId('seen', 'seen');
      await setExternalId('unseen', 'unseen');
      assert.equal(await userAt(idp, 'seen'), '@seen:test');

      file('growing.xml', federationMetadata);
      await hearth.server.restart();
      assert.equal(await userAt(second, 'zoe'), '@zoe1:test');
      assert.equal(await userAt(idp, 'zoe'), '@zoe:test');
      assert.equal(await userAt(second, 'zoe'), '@zoe1:test');
      assert.equal(await userAt(second, 'seen'), '@seen1:test', 'the first provider had this user');
      assert.equal(await userAt(idp, 'seen'), '@seen:test');
      for (const provider of [second, idp]) {
        const page = await pageOf(provider, 'unseen');
        assert.equal(page.status, 403);
        assert.match(page.body, /not assigned to an identity provider yet/);
      }
      await setExternalId('unseen', `${idp.entityId} unseen`);
      assert.equal(await userAt(idp, 'unseen'), '@unseen:test');
      assert.equal(await userAt(second, 'unseen'), '@unseen1:test');

      file('growing.xml', idp.metadata);
      await hearth.server.restart();
      for (const uid of ['zoe', 'early', 'seen', 'unseen']) {
        assert.equal(await userAt(idp, uid), `@${uid}:test`, 'with one provider again');
      }

      file('growing.xml', second.metadata);
      await hearth.server.restart();
      for (const uid of ['early', 'early']) {
        const page = await pageOf(second, uid);
        assert.equal(page.status, 403, 'the account is of a provider that is missing from the metadata');
        assert.match(page.body, /another identity provider/);
      }
      assert.equal(
        await userAt(second, 'zoe'),
        '@zoe1:test',
        'an account from the time with several providers',
      );
      await setExternalId('early', `${second.entityId} early`);
      assert.equal(await userAt(second, 'early'), '@early:test', 'an administrator has assigned the account');
    } finally {
      await hearth.stop();
    }
  });
});
