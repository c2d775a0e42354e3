import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { jwtVerify } from 'jose';
import { type LoopbackServer, serveOnLoopback } from '../../../test/support/network/loopback.ts';
import { createLogger } from '../../kernel/observability/index.ts';
import { OidcServer } from '../test/oidc-server.ts';
import { publicUrl, SsoServer, ssoOptions } from '../test/sso-server.ts';

const callback = `${publicUrl}/_synapse/client/oidc/callback`;
const relay = 'https://relay.client.example/callback';
/** A PNG image of one pixel. */
const picture = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);

describe('options of OpenID Connect', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-oidc-'));
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  let idp: OidcServer;
  let images: LoopbackServer;
  /** Lines that the server has logged. */
  const logLines: string[] = [];
  let servedPicture = picture;
  let hearth: SsoServer;
  before(async () => {
    writeFileSync(join(folder, 'key.pem'), pem);
    images = await serveOnLoopback((_request, response) => {
      response.setHeader('content-type', 'image/png');
      response.end(servedPicture);
    });
    idp = await OidcServer.start(() => [
      {
        client_id: 'hearth',
        client_secret: 'a secret',
        redirect_uris: [callback, relay],
        backchannel_logout_uri: `${publicUrl}/_synapse/client/oidc/backchannel_logout`,
        backchannel_logout_session_required: true,
      },
      { client_id: 'public', redirect_uris: [callback], token_endpoint_auth_method: 'none' },
      { client_id: 'my-client_1.x', client_secret: 'a-b_c.d %', redirect_uris: [callback] },
    ]);
    const provider = (idp_id: string, more: object = {}) => ({
      idp_id,
      issuer: idp.issuer,
      client_id: 'hearth',
      client_secret: 'a secret',
      skip_verification: true,
      user_mapping_provider: { config: { localpart_template: '{{ user.sub }}' } },
      ...more,
    });
    const header = { jwt_header: { alg: 'ES256', kid: 'k' }, jwt_payload: { iss: 'team' } };
    const signed = { client_secret: null, client_auth_method: 'client_secret_post' };
    const mapping = (config: object) => ({
      user_mapping_provider: { config: { localpart_template: '{{ user.sub }}', ...config } },
    });
    const picker =
      '{{ server_name }} {{ redirect_url }}{% for p in providers %} {{ p.idp_id }}={{ p.idp_name }}{% endfor %}';
    writeFileSync(join(folder, 'sso_login_idp_picker.html'), picker);
    writeFileSync(join(folder, 'sso_error.html'), 'Our own page: {{ error }} <i>{{ error_description }}</i>');
    hearth = await SsoServer.start(
      'sqlite',
      {
        mail: { templates: { custom_template_directory: folder } },
        // Lets the server fetch pictures from `images`.
        outbound: { ip_range_whitelist: ['127.0.0.1/32'] },
        sso: ssoOptions({
          sso: { client_whitelist: ['https://app.client.example/'], update_profile_information: true },
          oidc_providers: [
            provider('oidc', { backchannel_logout_enabled: true, backchannel_logout_ignore_sub: true }),
            provider('key', { ...signed, client_secret_jwt_key: { key: pem, ...header } }),
            provider('file', {
              ...signed,
              client_secret_jwt_key: { key_file: join(folder, 'key.pem'), ...header },
            }),
            provider('algorithms', { id_token_signing_alg_values_supported: ['ES256'] }),
            provider('keys', {
              discover: false,
              authorization_endpoint: `${idp.issuer}/auth`,
              token_endpoint: `${idp.issuer}/token`,
              jwks_uri: `${idp.issuer}/jwks`,
            }),
            provider('public', { client_id: 'public', client_secret: null, client_auth_method: 'none' }),
            provider('hyphens', { client_id: 'my-client_1.x', client_secret: 'a-b_c.d %' }),
            provider('strict', { skip_verification: false }),
            provider('relay', { redirect_uri: relay }),
            provider('subject', mapping({ subject_template: '{{ user.email }}' })),
            provider('picture', mapping({ picture_template: '{{ user.picture }}' })),
            provider('claim', mapping({ picture_claim: 'picture' })),
          ],
        } as never),
      },
      { log: createLogger({ level: 'info', destination: { write: (line) => void logLines.push(line) } }) },
    );
  });
  after(async () => {
    await hearth.stop();
    await idp.stop();
    await images.close();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(() => {
    idp.authorizations.length = 0;
    idp.tokenRequests.length = 0;
  });
  const userOf = async (provider: string) => (await hearth.session(await hearth.login(provider)))['user_id'];

  it('[option: oidc_providers[].client_secret_jwt_key.key] [option: oidc_providers[].client_secret_jwt_key.key_file] [option: oidc_providers[].client_secret_jwt_key.jwt_header.alg] [option: oidc_providers[].client_secret_jwt_key.jwt_payload] signs a token in place of the client secret', async () => {
    for (const provider of ['oidc-key', 'oidc-file']) {
      idp.user = { sub: provider };
      // The provider of this test knows the secret `a secret` only.
      assert.equal((await hearth.login(provider)).status, 400);
      const token = new URLSearchParams(idp.tokenRequests.at(-1)!.body).get('client_secret')!;
      const { payload, protectedHeader } = await jwtVerify(token, publicKey, { audience: idp.issuer });
      assert.deepEqual([protectedHeader.alg, protectedHeader.kid], ['ES256', 'k']);
      assert.deepEqual([payload.iss, payload.sub], ['team', 'hearth']);
      assert.ok(payload.exp! > payload.iat!);
    }
  });

  it('[option: oidc_providers[].id_token_signing_alg_values_supported] refuses id tokens with other algorithms', async () => {
    idp.user = { sub: 'algorithms' };
    const page = await hearth.login('oidc-algorithms');
    assert.equal(page.status, 400);
  });

  it('[option: oidc_providers[].jwks_uri] verifies id tokens without discovery', async () => {
    idp.user = { sub: 'keys' };
    assert.equal(await userOf('oidc-keys'), '@keys:test');
    // Without discovery the server does not know whether the provider supports PKCE.
    assert.equal(idp.authorizations.at(-1)!.get('code_challenge'), null);
  });

  it('sends no client secret with client_auth_method: none, and proves by PKCE that it began the login', async () => {
    idp.user = { sub: 'public' };
    assert.equal(await userOf('oidc-public'), '@public:test');
    const { authorization, body } = idp.tokenRequests.at(-1)!;
    const sent = new URLSearchParams(body);
    assert.deepEqual([authorization, sent.get('client_secret')], [undefined, null]);
    assert.match(sent.get('code_verifier') ?? '', /^.{43,}$/);
  });

  it('encodes only the characters of the client id and the secret that need it, because many providers decode none', async () => {
    idp.user = { sub: 'hyphens' };
    assert.equal(await userOf('oidc-hyphens'), '@hyphens:test');
    const [scheme, credentials] = (idp.tokenRequests.at(-1)!.authorization ?? '').split(' ');
    assert.equal(scheme, 'Basic');
    assert.equal(Buffer.from(credentials!, 'base64').toString(), 'my-client_1.x:a-b_c.d+%25');
  });

  it('logs why a login cannot begin', async () => {
    logLines.length = 0;
    assert.equal((await hearth.login('oidc-strict')).status, 502);
    const logged = logLines
      .map((line) => JSON.parse(line))
      .find(({ provider }) => provider === 'oidc-strict');
    assert.equal(logged.code, 'provider_unavailable');
    assert.match(logged.err.message, /is not an https:\/\/ URL \(skip_verification allows it\)/);
  });

  it('refuses to start with a faulty template of the user mapping, and with a key for client secrets that cannot be used', async () => {
    const header = { jwt_header: { alg: 'ES256' } };
    for (const [faulty, message] of [
      [
        { user_mapping_provider: { config: { localpart_template: '{{ user.sub' } } },
        /oidc_providers\[0\]\.user_mapping_provider\.config: the template of the localpart is faulty: /,
      ],
      [
        { client_secret_jwt_key: { key_file: join(folder, 'missing.pem'), ...header } },
        /oidc_providers\[0\]\.client_secret_jwt_key: .*missing\.pem/,
      ],
      [
        { client_secret_jwt_key: { key: 'no key', ...header } },
        /oidc_providers\[0\]\.client_secret_jwt_key: the value of key is not a private key in PEM form/,
      ],
    ] as const) {
      const provider = {
        idp_id: 'faulty',
        issuer: idp.issuer,
        client_id: 'hearth',
        client_secret: 'a secret',
      };
      const sso = ssoOptions({ oidc_providers: [{ ...provider, ...faulty }] } as never);
      await assert.rejects(SsoServer.start('sqlite', { sso }), message);
    }
  });

  it('shows the templates of the operator in place of the built-in templates, and fills in the variables of the reference server', async () => {
    const { body } = await hearth.browser().get(hearth.redirectUrl());
    assert.match(body, /^test https:\/\/app\.client\.example\/\?room=1#\/home oidc=OIDC oidc-key=OIDC/);
    idp.user = undefined;
    const refused = await hearth.login('oidc-keys');
    assert.equal(refused.status, 400);
    assert.equal(refused.body, 'Our own page: access_denied <i>The user &lt;b&gt;refused&lt;/b&gt;</i>');
  });

  it('[option: oidc_providers[].redirect_uri] accepts an authorization response that another page received and passed to the callback', async () => {
    idp.user = { sub: 'relayed' };
    const browser = hearth.browser();
    const page = await browser.get(hearth.redirectUrl('oidc-relay'));
    assert.ok(page.headers.location?.startsWith(`${relay}?`), page.headers.location);
    const done = await browser.get(`${callback}${new URL(page.headers.location ?? '').search}`);
    assert.equal((await hearth.session(done))['user_id'], '@relayed:test');
  });

  it('[option: oidc_providers[].user_mapping_provider.config.subject_template] recognises users by the value of the subject template', async () => {
    idp.user = { sub: 'first', email: 'same@mail.example' };
    assert.equal(await userOf('oidc-subject'), '@first:test');
    idp.user = { sub: 'second', email: 'same@mail.example' };
    assert.equal(await userOf('oidc-subject'), '@first:test');
  });

  it('[option: oidc_providers[].user_mapping_provider.config.picture_template] [option: oidc_providers[].user_mapping_provider.config.picture_claim] uses the picture of a new user as avatar', async () => {
    for (const provider of ['picture', 'claim']) {
      idp.user = { sub: provider, picture: `http://127.0.0.1:${images.port}/me.png` };
      assert.equal(await userOf(`oidc-${provider}`), `@${provider}:test`);
      const { body } = await hearth.server.api('GET', `/_matrix/client/v3/profile/@${provider}:test`);
      assert.match(String(body['avatar_url']), /^mxc:\/\/test\/\w+$/);
    }
  });

  it('stores the picture of a user again at a later login only when the picture has changed', async () => {
    const avatarAfterLogin = async () => {
      idp.user = { sub: 'again', picture: `http://127.0.0.1:${images.port}/me.png` };
      await userOf('oidc-picture');
      const { body } = await hearth.server.api('GET', '/_matrix/client/v3/profile/@again:test');
      return String(body['avatar_url']);
    };
    const first = await avatarAfterLogin();
    assert.match(first, /^mxc:/);
    assert.equal(await avatarAfterLogin(), first);
    servedPicture = Buffer.concat([picture, Buffer.from([0])]);
    assert.notEqual(await avatarAfterLogin(), first);
  });

  it('[option: oidc_providers[].backchannel_logout_ignore_sub] logs out, for the provider with the id oidc, the session that a logout token names, whatever subject the token has', async () => {
    idp.user = { sub: 'leaver' };
    const session = await hearth.session(await hearth.login('oidc'));
    const sid = idp.sessionIds.at(-1);
    const token = await idp.logoutToken('hearth', { sub: 'another', sid });
    const path = `${publicUrl}/_synapse/client/oidc/backchannel_logout`;
    assert.equal((await hearth.browser().post(path, { logout_token: token })).status, 200);
    const whoami = await hearth.server.api('GET', '/_matrix/client/v3/account/whoami', {
      token: String(session['access_token']),
    } as never);
    assert.equal(whoami.status, 401);
  });
});
