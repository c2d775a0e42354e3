import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { SignJWT } from 'jose';
import { openContents } from '../../../test/support/databases/database-contents.ts';
import { CasServer } from '../test/cas-server.ts';
import { SsoServer, ssoOptions } from '../test/sso-server.ts';

describe('logins of new users while the server is disabled (hs_disabled)', () => {
  const secret = 'a shared secret that is long enough';
  let cas: CasServer;
  let hearth: SsoServer;
  before(async () => {
    cas = await CasServer.start();
    hearth = await SsoServer.start('sqlite', {
      accounts: { hs_disabled: true },
      sso: ssoOptions({
        sso: { client_whitelist: ['https://app.client.example/'] },
        cas_config: { enabled: true, server_url: cas.url },
        jwt_config: { enabled: true, secret, algorithm: 'HS256' },
      }),
    });
  });
  after(async () => {
    await hearth.stop();
    await cas.stop();
  });

  it('creates no account through a provider or with a JSON web token while hs_disabled is set', async () => {
    cas.user = { name: 'alice' };
    assert.equal((await hearth.login('cas')).status, 403);
    const token = await new SignJWT({ sub: 'bob' })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(Buffer.from(secret));
    const body = { type: 'org.matrix.login.jwt', token };
    const answer = await hearth.server.api('POST', '/_matrix/client/v3/login', { body });
    assert.deepEqual([answer.status, answer.body['errcode']], [403, 'M_RESOURCE_LIMIT_EXCEEDED']);
    const contents = await openContents(hearth.server.databaseOptions);
    const users = await contents.rows('users');
    await contents.close();
    assert.deepEqual(users, []);
  });
});
