import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { CasServer } from '../test/cas-server.ts';
import { publicUrl, SsoServer, ssoOptions } from '../test/sso-server.ts';
import { CasProvider } from './cas-provider.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('login with CAS', () => {
    let cas: CasServer;
    let hearth: SsoServer;
    before(async () => {
      cas = await CasServer.start();
      hearth = await SsoServer.start(open.kind, {
        sso: ssoOptions({
          sso: { client_whitelist: ['https://app.client.example/'] },
          cas_config: {
            enabled: true,
            idp_name: 'University',
            idp_icon: 'mxc://test/cas',
            idp_brand: 'university',
            server_url: cas.url,
            protocol_version: 3,
            displayname_attribute: 'fullName',
            required_attributes: { member: 'staff', active: null },
            allow_numeric_ids: true,
            numeric_ids_prefix: 'n',
          },
        } as never),
      });
    });
    after(async () => {
      await hearth.stop();
      await cas.stop();
    });
    beforeEach(() => {
      cas.response = undefined;
      cas.validations.length = 0;
    });
    const staff = { member: ['student', 'staff'], active: ['1'], fullName: ['Alice &amp; Co'] };

    it('[option: cas_config.enabled] [option: cas_config.idp_name] [option: cas_config.idp_icon] [option: cas_config.idp_brand] lists CAS in GET /login', async () => {
      const { body } = await hearth.server.api('GET', '/_matrix/client/v3/login');
      const flows = body['flows'] as { type: string; identity_providers?: object[] }[];
      assert.ok(flows.some(({ type }) => type === 'm.login.cas'));
      assert.deepEqual(flows.find(({ type }) => type === 'm.login.sso')!.identity_providers, [
        { id: 'cas', name: 'University', icon: 'mxc://test/cas', brand: 'university' },
      ]);
    });

    it('[option: cas_config.server_url] [option: cas_config.protocol_version] [option: cas_config.displayname_attribute] [option: cas_config.required_attributes] [option: cas_config.enable_registration] creates an account at the first login of a CAS user and logs in to it at the second', async () => {
      cas.user = { name: 'Alice@Uni', attributes: staff };
      const session = await hearth.session(await hearth.browser().get(hearth.redirectUrl()));
      assert.equal(session['user_id'], '@alice=40uni:test');
      assert.equal(await hearth.displayName('@alice=40uni:test'), 'Alice & Co');
      assert.deepEqual(cas.validations, ['/cas/p3/proxyValidate']);
      const legacy = `${publicUrl}/_matrix/client/r0/login/cas/redirect?redirectUrl=https%3A%2F%2Fapp.client.example%2F`;
      assert.equal((await hearth.session(await hearth.browser().get(legacy)))['user_id'], session['user_id']);
    });

    it('refuses CAS users who do not have the required attributes', async () => {
      for (const attributes of [{}, { member: ['staff'] }, { member: ['student'], active: ['1'] }]) {
        cas.user = { name: 'bob', attributes };
        assert.equal((await hearth.login('cas')).status, 403);
      }
    });

    it('[option: cas_config.allow_numeric_ids] [option: cas_config.numeric_ids_prefix] puts a prefix before CAS user names that are numbers', async () => {
      cas.user = { name: '1234', attributes: staff };
      assert.equal((await hearth.session(await hearth.login('cas')))['user_id'], '@n1234:test');
    });

    it('logs a CAS user in to the existing account of the same name, and refuses the account to a second CAS user', async () => {
      const { userId } = await hearth.server.register('carol');
      cas.user = { name: 'carol', attributes: staff };
      assert.equal((await hearth.session(await hearth.login('cas')))['user_id'], userId);
      cas.user = { name: 'CAROL', attributes: staff };
      assert.equal((await hearth.login('cas')).status, 403);
    });

    it('refuses CAS tickets that are sent by another browser, used twice or issued for another login, and invalid responses', async () => {
      cas.user = { name: 'dora', attributes: staff };
      const browser = hearth.browser();
      const begun = await browser.once(hearth.redirectUrl('cas'));
      const service = new URL(begun.headers.location!).searchParams.get('service')!;
      const ticketUrl = `${service}&ticket=${cas.issue(service)}`;
      assert.equal((await hearth.browser().get(ticketUrl)).status, 400, 'another browser');
      assert.equal((await browser.get(ticketUrl)).status, 303);
      assert.equal((await browser.get(ticketUrl)).status, 400, 'twice');
      const next = await browser.once(hearth.redirectUrl('cas'));
      const otherService = new URL(next.headers.location!).searchParams.get('service')!;
      const ticketOfOtherLogin = await browser.get(`${otherService}&ticket=${cas.issue(service)}`);
      assert.match(ticketOfOtherLogin.body, /does not accept the ticket/);
      const entity = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>';
      const success = (user: string) =>
        `<cas:serviceResponse xmlns:cas="c"><cas:authenticationSuccess>${user}</cas:authenticationSuccess></cas:serviceResponse>`;
      for (const response of [
        `${entity}${success('<cas:user>&x;</cas:user>')}`,
        success('<cas:user>dora</cas:user><cas:user>root</cas:user>'),
        success(''),
        'yes\ndora\n',
        '<html></html>',
      ]) {
        cas.response = response;
        assert.equal((await hearth.login('cas')).status, 400, response);
      }
    });
  });
});

describe('CasProvider', () => {
  const httpThatReturns = (text: string) => ({
    fetch: async (url: URL) => {
      paths.push(url.pathname);
      return { status: 200, headers: {}, body: Buffer.from(text), url };
    },
  });
  const paths: string[] = [];
  const open = (more: object, text: string) => {
    const config = ssoOptions({
      cas_config: { enabled: true, server_url: 'https://cas/x', ...more },
    } as never).cas_config;
    return new CasProvider({ http: httpThatReturns(text), baseUrl: 'https://test/' }, config);
  };

  it('validates tickets by versions 1 and 2 of the CAS protocol', async () => {
    const byVersion1 = await open({ protocol_version: 1 }, 'yes\nalice\n').authenticate('t', 's', {});
    assert.deepEqual([byVersion1.externalId, byVersion1.localpart], ['alice', 'alice']);
    await assert.rejects(open({ protocol_version: 1 }, 'no\n\n').authenticate('t', 's', {}), {
      code: 'invalid_ticket',
    });
    const xml =
      '<r:serviceResponse xmlns:r="x"><r:authenticationSuccess><r:user>b<!-- c -->ob</r:user></r:authenticationSuccess></r:serviceResponse>';
    const byVersion2 = await open({ protocol_version: 2 }, xml).authenticate('t', 's', {});
    assert.equal(byVersion2.externalId, 'bob');
    await open({}, xml).authenticate('t', 's', {});
    assert.deepEqual(paths, ['/x/validate', '/x/validate', '/x/proxyValidate', '/x/proxyValidate']);
  });

  it('allows no new accounts with enable_registration: false, and leaves numeric names unchanged without allow_numeric_ids', async () => {
    assert.equal(open({ enable_registration: false }, '').allowsRegistration, false);
    assert.equal(
      (await open({ protocol_version: 1 }, 'yes\n12\n').authenticate('t', 's', {})).localpart,
      '12',
    );
  });
});
