import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { type LoopbackServer, serveOnLoopback } from '../../../test/support/network/loopback.ts';
import {
  type ResponseOptions,
  responseUrl,
  rsaCertificate,
  SamlIdp,
  serviceEntityId,
} from '../test/saml-idp.ts';
import { clientUrl, publicUrl, SsoServer, ssoOptions } from '../test/sso-server.ts';
import type { TestBrowser } from '../test/test-browser.ts';

const folder = mkdtempSync(join(tmpdir(), 'hearth-saml-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, content: string) => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};

const [idp, second, stranger] = ['one', 'two', 'stranger'].map(
  (name) => new SamlIdp(`https://${name}.client.example`),
);
const service = rsaCertificate();
const localMetadata = file('one.xml', idp!.metadata);
const keys = { key_file: file('sp.key', service.key), cert_file: file('sp.pem', service.cert) };
const whitelist = { client_whitelist: ['https://app.client.example/'] };

/** Begins a login. @returns the request at the identity provider */
const begin = async (hearth: SsoServer, browser: TestBrowser) => {
  const { headers } = await browser.get(hearth.redirectUrl('saml'));
  return idp!.read(headers.location ?? '');
};

forEachDatabase((open) => {
  describe('login with SAML', () => {
    let hearth: SsoServer;
    before(async () => {
      hearth = await SsoServer.start(open.kind, {
        sso: ssoOptions({
          sso: whitelist,
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
    const good = (uid: string, more: Record<string, string[]> = {}) => ({
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
      const xml = await idp!.xml({ attributes: good('alice'), inResponseTo: id, ...options });
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

    it('[option: saml2_config.sp_config.metadata.local] [option: saml2_config.user_mapping_provider.config.mxid_source_attribute] [option: saml2_config.user_mapping_provider.config.mxid_mapping] creates an account at the first login and finds it at the second', async () => {
      const attributes = good('Alice B', { displayName: ['Alice'], email: ['alice@mail.example'] });
      const first = await hearth.session((await login({ attributes })).page);
      assert.equal(first['user_id'], '@alice=20b:test');
      assert.equal(await hearth.displayName('@alice=20b:test'), 'Alice');
      assert.equal((await hearth.session((await login({ attributes })).page))['user_id'], first['user_id']);
    });

    it('accepts encrypted assertions, and refuses responses without a signature', async () => {
      const encrypted = await login({ attributes: good('eve'), encryptFor: service });
      assert.equal((await hearth.session(encrypted.page))['user_id'], '@eve:test');
      assert.equal((await login({ signs: 'nothing' })).page.status, 400);
    });

    it('[option: saml2_config.attribute_requirements[].attribute] [option: saml2_config.attribute_requirements[].value] [option: saml2_config.attribute_requirements[].one_of] refuses users who do not meet the attribute requirements', async () => {
      for (const attributes of [
        { uid: ['bob'] },
        good('bob', { active: ['no'] }),
        good('bob', { role: ['guest'] }),
      ]) {
        assert.equal((await login({ attributes })).page.status, 403);
      }
    });

    it('[option: saml2_config.grandfathered_mxid_source_attribute] logs in to an existing account that another attribute names', async () => {
      const { userId } = await hearth.server.register('carol');
      const attributes = good('c-17', { oldName: ['carol'] });
      assert.equal((await hearth.session((await login({ attributes })).page))['user_id'], userId);
      const thief = good('c-18', { oldName: ['carol'] });
      assert.equal((await login({ attributes: thief })).page.status, 403, 'a second user of the provider');
    });

    it('[option: saml2_config.sp_config.accepted_time_diff] refuses expired assertions, within the accepted difference of clocks', async () => {
      assert.equal((await login({ validFor: -1_000 })).page.status, 303);
      assert.equal((await login({ validFor: -4_000 })).page.status, 400);
    });

    it('refuses responses that are sent twice, by another browser or to another request', async () => {
      const { browser, fields } = await login({});
      assert.equal((await browser.post(responseUrl, fields)).status, 400, 'the login is over');
      const next = await begin(hearth, browser);
      assert.equal(
        (await browser.post(responseUrl, { ...fields, RelayState: next.relayState })).status,
        400,
        'replay',
      );
      const { id, relayState } = await begin(hearth, browser);
      const SAMLResponse = await idp!.response({ attributes: good('alice'), inResponseTo: id });
      assert.equal(
        (await hearth.browser().post(responseUrl, { SAMLResponse, RelayState: relayState })).status,
        400,
      );
      assert.equal((await login({ inResponseTo: '_another' })).page.status, 400);
      assert.equal((await login({ inResponseTo: undefined })).page.status, 400, 'unsolicited');
    });

    it('refuses responses for another service, of another issuer, and with another key', async () => {
      assert.equal((await login({ audience: 'https://elsewhere' })).page.status, 400, 'audience');
      assert.equal((await login({ recipient: 'https://elsewhere' })).page.status, 400, 'recipient');
      assert.equal((await login({ issuer: 'https://elsewhere' })).page.status, 400, 'issuer');
      assert.equal((await login({ signedBy: stranger!.certificate })).page.status, 400, 'key');
    });

    it('refuses changed assertions, wrapped signatures and XML entities, and ignores comments in names', async () => {
      const forged = '<saml:AttributeValue>root</saml:AttributeValue>';
      const original = '<saml:AttributeValue>alice</saml:AttributeValue>';
      const assertionIn = (xml: string) => /<saml:Assertion.*<\/saml:Assertion>/s.exec(xml)![0];
      const evil = (xml: string) =>
        assertionIn(xml)
          .replace(original, forged)
          .replace(/ID="_[^"]+"/, 'ID="_evil"')
          .replace(/<(ds:)?Signature.*<\/(ds:)?Signature>/s, '');
      const changes: Record<string, (xml: string) => string> = {
        changed: (xml) => xml.replace(original, forged),
        'a second assertion': (xml) => xml.replace(/<saml:Assertion/, `${evil(xml)}<saml:Assertion`),
        'the signed assertion inside of the forged one': (xml) =>
          xml.replace(
            assertionIn(xml),
            evil(xml).replace('</saml:Subject>', `</saml:Subject>${assertionIn(xml)}`),
          ),
        'the signed assertion in an extension': (xml) =>
          xml
            .replace(
              '<samlp:Status>',
              `<samlp:Extensions>${assertionIn(xml)}</samlp:Extensions><samlp:Status>`,
            )
            .replace(/<saml:Assertion(?!.*<saml:Assertion).*<\/saml:Assertion>/s, evil(xml)),
        'a document type': (xml) => `<!DOCTYPE r [<!ENTITY x "root">]>${xml}`,
        'external entities': (xml) => `<!DOCTYPE r SYSTEM "http://127.0.0.1:1/x">${xml}`,
      };
      for (const [name, change] of Object.entries(changes)) {
        assert.equal((await login({}, change)).page.status, 400, name);
      }
      const attributes = good('alice', { uid: ['alice<!-- x -->.evil'] });
      const { page } = await login({ attributes });
      assert.equal((await hearth.session(page))['user_id'], '@alice.evil:test', 'the whole name counts');
    });
  });
});

describe('options of SAML', () => {
  let source: LoopbackServer;
  before(async () => {
    source = await serveOnLoopback((_request, response) => response.end(second!.metadata));
  });
  after(() => source.close());
  const start = (more: object) =>
    SsoServer.start('sqlite', { sso: ssoOptions({ sso: whitelist, saml2_config: more }) });

  it('[option: saml2_config.sp_config.metadata.remote] [option: saml2_config.user_mapping_provider.config.mxid_source_attribute] [option: saml2_config.user_mapping_provider.config.mxid_mapping] asks the user to choose one of several identity providers, and maps names with dots', async () => {
    const metadata = { local: [localMetadata], remote: [{ url: `http://127.0.0.1:${source.port}/` }] };
    const config = { mxid_source_attribute: 'eppn', mxid_mapping: 'dotreplace' };
    const hearth = await start({ sp_config: { metadata }, user_mapping_provider: { config } });
    try {
      const browser = hearth.browser();
      const picker = await browser.get(hearth.redirectUrl('saml'));
      assert.match(
        picker.body,
        /value="https:\/\/one\.client\.example".*value="https:\/\/two\.client\.example"/s,
      );
      const { headers } = await browser.get(`${picker.url}&idp=${encodeURIComponent(second!.entityId)}`);
      assert.ok(headers.location?.startsWith(`${second!.entityId}/sso?`), headers.location);
      const { id, relayState } = second!.read(headers.location ?? '');
      const attributes = { uid: ['x'], eppn: ['_Dora@Uni.example'] };
      const wrong = await idp!.response({ attributes, inResponseTo: id });
      const right = await second!.response({ attributes, inResponseTo: id });
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

  it('[option: saml2_config.config_path] [option: saml2_config.idp_entityid] [option: saml2_config.sp_config.service.sp.allow_unsolicited] reads the configuration from a file, uses the named identity provider, and accepts logins that begin at a provider', async () => {
    const both = `<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata">${idp!.metadata}${second!.metadata}</md:EntitiesDescriptor>`;
    const config_path = file(
      'sp.yaml',
      `metadata: { local: [${file('both.xml', both)}] }\nservice: { sp: { allow_unsolicited: true } }\n`,
    );
    const hearth = await start({ config_path, idp_entityid: second!.entityId });
    try {
      const { headers } = await hearth.browser().get(hearth.redirectUrl('saml'));
      assert.ok(headers.location?.startsWith(`${second!.entityId}/sso?`), headers.location);
      const SAMLResponse = await idp!.response({ attributes: { uid: ['erin'] } });
      const fields = { SAMLResponse, RelayState: clientUrl };
      const page = await hearth.browser().post(responseUrl, fields);
      assert.equal((await hearth.session(page))['user_id'], '@erin:test');
      assert.equal((await hearth.browser().post(responseUrl, fields)).status, 400, 'replay');
      const solicited = await idp!.response({ attributes: { uid: ['erin'] }, inResponseTo: '_x' });
      assert.equal(
        (await hearth.browser().post(responseUrl, { ...fields, SAMLResponse: solicited })).status,
        400,
      );
      const script = {
        SAMLResponse: await idp!.response({ attributes: { uid: ['erin'] } }),
        RelayState: 'javascript:alert(1)',
      };
      assert.equal((await hearth.browser().post(responseUrl, script)).status, 400);
    } finally {
      await hearth.stop();
    }
  });

  it('[option: saml2_config.saml_session_lifetime] refuses the response of a login that took too long', async () => {
    const { manualClock } = await import('../../../test/support/clocks/manual-clock.ts');
    const clock = manualClock();
    const hearth = await SsoServer.start(
      'sqlite',
      {
        sso: ssoOptions({
          saml2_config: {
            sp_config: { metadata: { local: [localMetadata] } },
            saml_session_lifetime: 60_000,
          },
        }),
      },
      { clock },
    );
    try {
      const browser = hearth.browser();
      const { id, relayState } = await begin(hearth, browser);
      clock.advance(60_001);
      const SAMLResponse = await idp!.response({ attributes: { uid: ['x'] }, inResponseTo: id });
      const page = await browser.post(`${publicUrl}/_synapse/client/saml2/authn_response`, {
        SAMLResponse,
        RelayState: relayState,
      });
      assert.match(page.body, /has expired/);
    } finally {
      await hearth.stop();
    }
  });
});
