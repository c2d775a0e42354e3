import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { createSamlFixture, trustedClient } from '../test/saml-fixture.ts';
import { type ResponseOptions, responseUrl, serviceEntityId } from '../test/saml-idp.ts';
import { publicUrl, SsoServer, ssoOptions } from '../test/sso-server.ts';

const { idp, service, file, localMetadata, begin } = createSamlFixture();
const keys = { key_file: file('sp.key', service.key), cert_file: file('sp.pem', service.cert) };

forSelectedDatabases(import.meta.url, (open) => {
  describe('login with SAML', () => {
    let hearth: SsoServer;
    before(async () => {
      hearth = await SsoServer.start(open.kind, {
        sso: ssoOptions({
          sso: trustedClient,
          saml2_config: {
            idp_name: 'Institute',
            idp_icon: 'mxc://test/saml',
            idp_brand: 'institute',
            sp_config: { metadata: { local: [localMetadata] }, accepted_time_diff: 3, ...keys },
            attribute_requirements: [
              { attribute: 'role', one_of: ['staff', 'admin'] },
              { attribute: 'active', value: 'yes' },
            ],
            grandfathered_mxid_source_attribute: 'oldName',
          },
        }),
      });
    });
    after(() => hearth.stop());
    /** Returns attributes of a user that meet the requirements of the configuration. */
    const accepted = (uid: string, more: Record<string, string[]> = {}) => ({
      uid: [uid],
      role: ['x', 'staff'],
      active: ['yes'],
      ...more,
    });
    /** Logs in with a response. */
    const login = async (
      options: Partial<ResponseOptions>,
      change: (xml: string) => string = (xml) => xml,
    ) => {
      const browser = hearth.browser();
      const { id, relayState } = await begin(hearth, browser);
      const xml = await idp.xml({ attributes: accepted('alice'), inResponseTo: id, ...options });
      const SAMLResponse = Buffer.from(change(xml)).toString('base64');
      const fields = { SAMLResponse, RelayState: relayState };
      return {
        page: await browser.post(responseUrl, fields, { 'sec-fetch-site': 'cross-site' }),
        browser,
        fields,
      };
    };

    it('[option: saml2_config.idp_name] [option: saml2_config.idp_icon] [option: saml2_config.idp_brand] lists SAML in GET /login', async () => {
      const { body } = await hearth.server.api('GET', '/_matrix/client/v3/login');
      const flows = body['flows'] as { type: string; identity_providers?: object[] }[];
      assert.deepEqual(flows.find(({ type }) => type === 'm.login.sso')!.identity_providers, [
        { id: 'saml', name: 'Institute', icon: 'mxc://test/saml', brand: 'institute' },
      ]);
    });

    it('serves SAML metadata with the URL for responses and the certificate', async () => {
      const page = await hearth.browser().get(serviceEntityId);
      assert.equal(page.headers['content-type'], 'application/samlmetadata+xml');
      assert.ok(
        page.body.includes(`entityID="${serviceEntityId}"`) && page.body.includes(responseUrl),
        page.body,
      );
      assert.match(page.body, /<X509Certificate>|:X509Certificate>/);
    });

    it('[option: saml2_config.sp_config.metadata.local] [option: saml2_config.user_mapping_provider.config.mxid_source_attribute] [option: saml2_config.user_mapping_provider.config.mxid_mapping] creates an account at the first login of a SAML user and logs in to it at the second', async () => {
      const attributes = accepted('Alice B', { displayName: ['Alice'], email: ['alice@mail.example'] });
      const first = await hearth.session((await login({ attributes })).page);
      assert.equal(first['user_id'], '@alice=20b:test');
      assert.equal(await hearth.displayName('@alice=20b:test'), 'Alice');
      assert.equal((await hearth.session((await login({ attributes })).page))['user_id'], first['user_id']);
    });

    it('accepts encrypted SAML assertions, and refuses SAML responses without a signature', async () => {
      const encrypted = await login({ attributes: accepted('eve'), encryptFor: service });
      assert.equal((await hearth.session(encrypted.page))['user_id'], '@eve:test');
      assert.equal((await login({ signs: 'nothing' })).page.status, 400);
    });

    it('[option: saml2_config.attribute_requirements[].attribute] [option: saml2_config.attribute_requirements[].value] [option: saml2_config.attribute_requirements[].one_of] refuses users who do not meet the attribute requirements', async () => {
      for (const attributes of [
        { uid: ['bob'] },
        accepted('bob', { active: ['no'] }),
        accepted('bob', { role: ['guest'] }),
      ]) {
        assert.equal((await login({ attributes })).page.status, 403);
      }
    });

    it('[option: saml2_config.grandfathered_mxid_source_attribute] logs in to an existing account that another attribute names', async () => {
      const { userId } = await hearth.server.register('carol');
      const attributes = accepted('c-17', { oldName: ['carol'] });
      assert.equal((await hearth.session((await login({ attributes })).page))['user_id'], userId);
      const thief = accepted('c-18', { oldName: ['carol'] });
      assert.equal((await login({ attributes: thief })).page.status, 403, 'a second user of the provider');
    });

    it('[option: saml2_config.sp_config.accepted_time_diff] refuses assertions that expired longer ago than the accepted difference of clocks', async () => {
      assert.equal((await login({ validFor: -1_000 })).page.status, 303);
      assert.equal((await login({ validFor: -4_000 })).page.status, 400);
    });

    it('refuses SAML responses that are sent twice, come from another browser or respond to another request', async () => {
      const { browser, fields } = await login({});
      assert.equal((await browser.post(responseUrl, fields)).status, 400, 'the login is over');
      const next = await begin(hearth, browser);
      assert.equal(
        (await browser.post(responseUrl, { ...fields, RelayState: next.relayState })).status,
        400,
        'replay',
      );
      const { id, relayState } = await begin(hearth, browser);
      const SAMLResponse = await idp.response({ attributes: accepted('alice'), inResponseTo: id });
      assert.equal(
        (await hearth.browser().post(responseUrl, { SAMLResponse, RelayState: relayState })).status,
        400,
      );
      assert.equal((await login({ inResponseTo: '_another' })).page.status, 400);
      assert.equal((await login({ inResponseTo: undefined })).page.status, 400, 'unsolicited');
    });

    it('requires that the SAML identity provider authenticates the user again to confirm an action', async () => {
      const session = await hearth.session((await login({ attributes: accepted('zoe') })).page);
      const remove = (auth = {}) =>
        hearth.server.api('DELETE', `/_matrix/client/v3/devices/${session['device_id']}`, {
          token: String(session['access_token']),
          body: auth,
        });
      const authSession = (await remove()).body['session'];
      const confirm = async (options: Partial<ResponseOptions>) => {
        const browser = hearth.browser();
        const { headers } = await browser.get(
          `${publicUrl}/_synapse/client/sso/confirm/saml?session=${authSession}`,
        );
        const { id, relayState, xml } = idp.read(headers.location ?? '');
        assert.match(xml, /ForceAuthn="true"/);
        const SAMLResponse = await idp.response({
          attributes: accepted('zoe'),
          inResponseTo: id,
          ...options,
        });
        return browser.post(responseUrl, { SAMLResponse, RelayState: relayState });
      };
      const notAskedAgain = await confirm({ authenticatedAt: Date.now() - 600_000 });
      assert.match(notAskedAgain.body, /has not asked you to sign in again/);
      const auth = { auth: { type: 'm.login.sso', session: authSession } };
      assert.equal((await remove(auth)).status, 401);
      assert.equal((await confirm({})).status, 200);
      assert.equal((await remove(auth)).status, 200);
    });

    it('accepts a SAML response that is signed as a whole, and refuses SAML responses whose attributes were changed', async () => {
      const { page } = await login({ signs: 'response', attributes: accepted('signed') });
      assert.equal((await hearth.session(page))['user_id'], '@signed:test');
      const change = (xml: string) => xml.replace('>alice<', '>root<');
      for (const signs of ['assertion', 'response'] as const) {
        assert.equal((await login({ signs }, change)).page.status, 400, signs);
      }
    });

    it('reads the whole value of a SAML attribute that contains an XML comment', async () => {
      const attributes = accepted('alice', { uid: ['alice<!-- x -->.evil'] });
      const { page } = await login({ attributes });
      assert.equal((await hearth.session(page))['user_id'], '@alice.evil:test', 'the whole name counts');
    });
  });
});
