import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { createSamlFixture, trustedClient } from '../test/saml-fixture.ts';
import { responseUrl } from '../test/saml-idp.ts';
import { clientUrl, SsoServer, ssoOptions } from '../test/sso-server.ts';
import { readServiceProvider } from './service-provider-config.ts';

const { idp, second, file, localMetadata, federationMetadata, begin } = createSamlFixture();

describe('options of SAML', () => {
  const start = (more: object) =>
    SsoServer.start('sqlite', { sso: ssoOptions({ sso: trustedClient, saml2_config: more }) });

  it('[option: saml2_config.config_path] [option: saml2_config.idp_entityid] [option: saml2_config.sp_config.service.sp.allow_unsolicited] reads the configuration from a file, uses the named identity provider, and accepts logins that begin at a provider', async () => {
    const config_path = file(
      'sp.yaml',
      `metadata: { local: [${file('both.xml', federationMetadata)}] }\nservice: { sp: { allow_unsolicited: true } }\n`,
    );
    const hearth = await start({ config_path, idp_entityid: second.entityId });
    try {
      const { headers } = await hearth.browser().get(hearth.redirectUrl('saml'));
      assert.ok(headers.location?.startsWith(`${second.entityId}/sso?`), headers.location);
      const another = `${hearth.redirectUrl('saml')}&saml_idp=${encodeURIComponent(idp.entityId)}`;
      assert.match((await hearth.browser().get(another)).body, /no such identity provider/);
      const otherResponse = await idp.response({ attributes: { uid: ['erin'] } });
      assert.match(
        (await hearth.browser().post(responseUrl, { SAMLResponse: otherResponse, RelayState: clientUrl }))
          .body,
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
      const statuses = new Set<number>();
      const browser = hearth.browser();
      for (let i = 0; i < 40; i++) {
        const fields = { SAMLResponse: 'eA==', RelayState: clientUrl };
        statuses.add((await browser.post(responseUrl, fields)).status);
      }
      assert.deepEqual([...statuses], [400, 429], 'the rate of one client address is limited');
    } finally {
      await hearth.stop();
    }
  });

  it('[option: saml2_config.enabled] offers no logins with SAML when it is off', async () => {
    const sp_config = { metadata: { local: [localMetadata] } };
    for (const enabled of [true, false]) {
      const hearth = await start({ enabled, sp_config });
      try {
        const { body } = await hearth.server.api('GET', '/_matrix/client/v3/login');
        assert.equal(JSON.stringify(body).includes('"saml"'), enabled);
      } finally {
        await hearth.stop();
      }
    }
  });

  it('refuses to start without a metadata file that the configuration names, unless SAML is off', async () => {
    const sp_config = { metadata: { local: [localMetadata, `${localMetadata}.old`] } };
    await assert.rejects(start({ sp_config }), /metadata file .*\.old cannot be read: it does not exist/);
    await (await start({ sp_config, enabled: false })).stop();
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
      const page = await browser.post(responseUrl, { SAMLResponse, RelayState: relayState });
      assert.match(page.body, /has expired/);
    } finally {
      await hearth.stop();
    }
  });
});
