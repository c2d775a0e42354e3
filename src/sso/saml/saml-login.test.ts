import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { type LoopbackServer, serveOnLoopback } from '../../../test/support/network/loopback.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import { ssoMigrations } from '../migrations.ts';
import {
  type ResponseOptions,
  responseUrl,
  rsaCertificate,
  SamlIdp,
  serviceEntityId,
} from '../test/saml-idp.ts';
import { clientUrl, publicUrl, SsoServer, ssoOptions } from '../test/sso-server.ts';
import type { TestBrowser } from '../test/test-browser.ts';
import { readServiceProvider } from './service-provider-config.ts';
import { UsedAssertions } from './used-assertions.ts';

const folder = mkdtempSync(join(tmpdir(), 'hearth-saml-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, content: string) => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};

const idp = new SamlIdp('https://one.client.example');
const second = new SamlIdp('https://two.client.example', rsaCertificate('second'));
const service = rsaCertificate('third');
const localMetadata = file('one.xml', idp.metadata);
const keys = { key_file: file('sp.key', service.key), cert_file: file('sp.pem', service.cert) };
const whitelist = { client_whitelist: ['https://app.client.example/'] };

/** Begins a login. @returns the request at the identity provider */
const begin = async (hearth: SsoServer, browser: TestBrowser) => {
  const { headers } = await browser.get(hearth.redirectUrl('saml'));
  return idp.read(headers.location ?? '');
};

forSelectedDatabases(import.meta.url, (open) => {
  describe('UsedAssertions', () => {
    it('returns false for a used assertion, and rejects when the database fails', async () => {
      const database = await open(ssoMigrations);
      const clock = manualClock();
      const used = new UsedAssertions({ database, clock });
      const assertion = { issuer: 'https://one.client.example', id: 'a', expiresAt: clock.now() + 1_000 };
      assert.deepEqual([await used.use(assertion), await used.use(assertion)], [true, false]);
      const unmigrated = await open([]);
      await assert.rejects(
        new UsedAssertions({ database: unmigrated, clock }).use(assertion),
        /used_assertions/,
      );
    });
  });

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
      const xml = await idp.xml({ attributes: good('alice'), inResponseTo: id, ...options });
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
      const attributes = good('Alice B', { displayName: ['Alice'], email: ['alice@mail.example'] });
      const first = await hearth.session((await login({ attributes })).page);
      assert.equal(first['user_id'], '@alice=20b:test');
      assert.equal(await hearth.displayName('@alice=20b:test'), 'Alice');
      assert.equal((await hearth.session((await login({ attributes })).page))['user_id'], first['user_id']);
    });

    it('accepts encrypted SAML assertions, and refuses SAML responses without a signature', async () => {
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
      const SAMLResponse = await idp.response({ attributes: good('alice'), inResponseTo: id });
      assert.equal(
        (await hearth.browser().post(responseUrl, { SAMLResponse, RelayState: relayState })).status,
        400,
      );
      assert.equal((await login({ inResponseTo: '_another' })).page.status, 400);
      assert.equal((await login({ inResponseTo: undefined })).page.status, 400, 'unsolicited');
    });

    it('requires that the SAML identity provider authenticates the user again to confirm an action', async () => {
      const session = await hearth.session((await login({ attributes: good('zoe') })).page);
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
        const SAMLResponse = await idp.response({ attributes: good('zoe'), inResponseTo: id, ...options });
        return browser.post(responseUrl, { SAMLResponse, RelayState: relayState });
      };
      const notAskedAgain = await confirm({ authenticatedAt: Date.now() - 600_000 });
      assert.match(notAskedAgain.body, /has not asked you to sign in again/);
      const auth = { auth: { type: 'm.login.sso', session: authSession } };
      assert.equal((await remove(auth)).status, 401);
      assert.equal((await confirm({})).status, 200);
      assert.equal((await remove(auth)).status, 200);
    });

    it('accepts a SAML response that is signed as a whole, and refuses it when its attributes were changed', async () => {
      const { page } = await login({ signs: 'response', attributes: good('signed') });
      assert.equal((await hearth.session(page))['user_id'], '@signed:test');
      const change = (xml: string) => xml.replace('>alice<', '>root<');
      for (const signs of ['assertion', 'response'] as const) {
        assert.equal((await login({ signs }, change)).page.status, 400, signs);
      }
    });

    it('reads the whole value of a SAML attribute that contains an XML comment', async () => {
      const attributes = good('alice', { uid: ['alice<!-- x -->.evil'] });
      const { page } = await login({ attributes });
      assert.equal((await hearth.session(page))['user_id'], '@alice.evil:test', 'the whole name counts');
    });
  });
});

describe('options of SAML', () => {
  let source: LoopbackServer;
  before(async () => {
    source = await serveOnLoopback((_request, response) => response.end(second.metadata));
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

  it('[option: saml2_config.config_path] [option: saml2_config.idp_entityid] [option: saml2_config.sp_config.service.sp.allow_unsolicited] reads the configuration from a file, uses the named identity provider, and accepts logins that begin at a provider', async () => {
    const federation = `<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata">${idp.metadata}${second.metadata}</md:EntitiesDescriptor>`;
    const config_path = file(
      'sp.yaml',
      `metadata: { local: [${file('both.xml', federation)}] }\nservice: { sp: { allow_unsolicited: true } }\n`,
    );
    const hearth = await start({ config_path, idp_entityid: second.entityId });
    try {
      const { headers } = await hearth.browser().get(hearth.redirectUrl('saml'));
      assert.ok(headers.location?.startsWith(`${second.entityId}/sso?`), headers.location);
      const another = `${hearth.redirectUrl('saml')}&saml_idp=${encodeURIComponent(idp.entityId)}`;
      assert.match((await hearth.browser().get(another)).body, /no such identity provider/);
      const refused = await idp.response({ attributes: { uid: ['erin'] } });
      assert.match(
        (await hearth.browser().post(responseUrl, { SAMLResponse: refused, RelayState: clientUrl })).body,
        /no such identity provider/,
      );
      const SAMLResponse = await second.response({ attributes: { uid: ['erin'] } });
      const fields = { SAMLResponse, RelayState: clientUrl };
      const page = await hearth.browser().post(responseUrl, fields);
      assert.equal((await hearth.session(page))['user_id'], '@erin:test');
      assert.equal((await hearth.browser().post(responseUrl, fields)).status, 400, 'replay');
      await hearth.server.restart();
      assert.equal((await hearth.browser().post(responseUrl, fields)).status, 400, 'replay after a restart');
      const solicited = await second.response({ attributes: { uid: ['erin'] }, inResponseTo: '_x' });
      assert.equal(
        (await hearth.browser().post(responseUrl, { ...fields, SAMLResponse: solicited })).status,
        400,
      );
      const script = {
        SAMLResponse: await second.response({ attributes: { uid: ['erin'] } }),
        RelayState: 'javascript:alert(1)',
      };
      assert.equal((await hearth.browser().post(responseUrl, script)).status, 400);
      const [statuses, browser] = [new Set<number>(), hearth.browser()];
      for (let i = 0; i < 40; i++) {
        const fields = { SAMLResponse: 'eA==', RelayState: clientUrl };
        statuses.add((await browser.post(responseUrl, fields)).status);
      }
      assert.deepEqual([...statuses], [400, 429], 'the rate of one client address is limited');
    } finally {
      await hearth.stop();
    }
  });

  it('separates users with the same uid at several SAML identity providers, and keeps the accounts of the first provider for its users, also when the configuration later has only another provider', async () => {
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

      file(
        'growing.xml',
        `<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata">${idp.metadata}${second.metadata}</md:EntitiesDescriptor>`,
      );
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

  it('refuses to start when accepted_time_diff in the file of config_path is not a number of seconds', async () => {
    const config_path = file(
      'wrong.yaml',
      `accepted_time_diff: soon\nmetadata: { local: [${localMetadata}] }\n`,
    );
    await assert.rejects(start({ config_path }), /accepted_time_diff/);
    for (const accepted_time_diff of [-1, 1.5])
      assert.throws(() => readServiceProvider({ accepted_time_diff }), /accepted_time_diff/);
  });

  it('[option: saml2_config.saml_session_lifetime] refuses the SAML response to a login that took too long', async () => {
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
      const SAMLResponse = await idp.response({ attributes: { uid: ['x'] }, inResponseTo: id });
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
