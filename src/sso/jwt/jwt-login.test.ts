import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { SignJWT, UnsecuredJWT } from 'jose';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import { ssoOptions } from '../test/sso-server.ts';
import { JwtKeyProblem } from './jwt-key.ts';
import { JwtLogin } from './jwt-login.ts';

const secret = 'a shared secret that is long enough for every algorithm of HMAC, so that none is weak';
const key = Buffer.from(secret);

forSelectedDatabases(import.meta.url, (open) => {
  describe('login with a JSON web token', () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer({
        database: open.kind,
        config: {
          sso: ssoOptions({
            jwt_config: {
              enabled: true,
              secret,
              algorithm: 'HS256',
              subject_claim: 'login',
              display_name_claim: 'name',
              issuer: 'issuer',
              audiences: ['hearth', 'other'],
            },
          }),
        } as never,
      });
    });
    after(() => server.stop());
    const now = () => Math.floor(Date.now() / 1000);
    const sign = (claims: object, signingKey: Uint8Array | KeyObject = key, alg = 'HS256') =>
      new SignJWT({ iss: 'issuer', aud: 'hearth', login: 'alice', ...claims })
        .setProtectedHeader({ alg })
        .sign(signingKey);
    const login = async (token: unknown, type = 'org.matrix.login.jwt') => {
      const answer = await server.api('POST', '/_matrix/client/v3/login', { body: { type, token } });
      return { ...answer, code: [answer.status, answer.body['errcode']] };
    };

    it('[option: jwt_config.enabled] lists the login type of JSON web tokens in GET /login in both spellings', async () => {
      const { body } = await server.api('GET', '/_matrix/client/v3/login');
      const types = (body['flows'] as { type: string }[]).map(({ type }) => type);
      assert.ok(
        types.includes('org.matrix.login.jwt') && types.includes('org.proto.login.jwt'),
        types.join(),
      );
    });

    it('[option: jwt_config.secret] [option: jwt_config.algorithm] [option: jwt_config.subject_claim] [option: jwt_config.display_name_claim] creates an account at the first login with a JSON web token and logs in to it at the second', async () => {
      const token = await sign({ name: 'Alice', exp: now() + 60, nbf: now() - 60, iat: now() });
      const first = await login(token);
      assert.equal(first.body['user_id'], '@alice:test');
      assert.equal((await login(token, 'org.proto.login.jwt')).body['user_id'], '@alice:test');
      assert.equal((await login(await sign({ login: 'ALICE' }))).body['user_id'], '@alice:test');
      const profile = await server.api('GET', '/_matrix/client/v3/profile/@alice:test');
      assert.equal(profile.body['displayname'], 'Alice');
    });

    it('[option: jwt_config.issuer] [option: jwt_config.audiences] refuses tokens of other issuers and for other audiences', async () => {
      assert.equal((await login(await sign({ aud: ['x', 'other'] }))).status, 200);
      for (const claims of [{ iss: 'x' }, { iss: undefined }, { aud: 'x' }, { aud: undefined }]) {
        assert.deepEqual(
          (await login(await sign(claims))).code,
          [403, 'M_FORBIDDEN'],
          JSON.stringify(claims),
        );
      }
    });

    it('refuses tokens that are expired, not valid yet or issued in the future, but tolerates a difference of clocks of up to two minutes', async () => {
      for (const claims of [{ exp: now() - 130 }, { nbf: now() + 130 }, { iat: now() + 130 }]) {
        assert.deepEqual(
          (await login(await sign(claims))).code,
          [403, 'M_FORBIDDEN'],
          JSON.stringify(claims),
        );
      }
      assert.equal(
        (await login(await sign({ exp: now() - 100, nbf: now() + 100, iat: now() + 100 }))).status,
        200,
      );
    });

    it('refuses tokens that are malformed, unsigned, signed with another key or by another algorithm, or without a usable user name', async () => {
      const claims = { iss: 'issuer', aud: 'hearth', login: 'alice' };
      const forged = [
        new UnsecuredJWT(claims).encode(),
        await sign({}, Buffer.from(`another ${secret}`)),
        await sign({}, key, 'HS512'),
        await sign({ login: undefined }),
        await sign({ login: 7 }),
        await sign({ login: '' }),
        await sign({ login: 'ä' }),
        await sign({ login: '123' }),
        `${await sign({})}x`,
        'no token',
        'x'.repeat(20_000),
      ];
      for (const token of forged)
        assert.deepEqual((await login(token)).code, [403, 'M_FORBIDDEN'], token.slice(0, 60));
      assert.deepEqual((await login(undefined)).code, [400, 'M_MISSING_PARAM']);
    });

    it('refuses tokens of deactivated and locked users', async () => {
      const admin = await registerAdmin(server);
      for (const [name, change, code] of [
        ['gone', { deactivated: true }, [403, 'M_USER_DEACTIVATED']],
        ['stuck', { locked: true }, [401, 'M_USER_LOCKED']],
      ] as const) {
        const token = await sign({ login: name });
        assert.equal((await login(token)).status, 200);
        await admin.request('PUT', `/_synapse/admin/v2/users/@${name}:test`, change);
        assert.deepEqual((await login(token)).code, code);
      }
    });
  });
});

describe('JwtLogin', () => {
  const clock = manualClock();
  const config = (more: object) => ssoOptions({ jwt_config: { enabled: true, ...more } } as never).jwt_config;
  const open = (more: object) => {
    const known = { userId: '@alice:test', isGuest: false, isDeactivated: false, isLocked: false };
    const accounts = () => ({ accounts: { getUser: async () => known }, registration: {} }) as never;
    return new JwtLogin({ clock, serverName: 'test', accounts }, config(more), 'org.matrix.login.jwt');
  };
  const pem = (publicKey: KeyObject) => publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const curve = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve });
  const edwards = generateKeyPairSync('ed25519');
  const pairs = {
    RS256: rsa,
    RS384: rsa,
    RS512: rsa,
    PS256: rsa,
    PS384: rsa,
    PS512: rsa,
    ES256: curve('P-256'),
    ES384: curve('P-384'),
    ES512: curve('P-521'),
    EdDSA: edwards,
    Ed25519: edwards,
  };

  it('verifies JSON web tokens signed by each supported algorithm', async () => {
    for (const alg of ['HS256', 'HS384', 'HS512']) {
      const token = await new SignJWT({ sub: 'alice' }).setProtectedHeader({ alg }).sign(key);
      assert.deepEqual(
        await open({ secret, algorithm: alg }).login({ token }),
        { userId: '@alice:test' },
        alg,
      );
    }
    for (const [alg, { privateKey, publicKey }] of Object.entries(pairs)) {
      const token = await new SignJWT({ sub: 'alice' }).setProtectedHeader({ alg }).sign(privateKey);
      const login = open({ secret: pem(publicKey), algorithm: alg });
      assert.deepEqual(await login.login({ token }), { userId: '@alice:test' }, alg);
    }
  });

  it('refuses a token that was signed by HMAC with the public key as its secret (key confusion)', async () => {
    const publicKeyPem = pem(rsa.publicKey);
    const token = await new SignJWT({ sub: 'alice' })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(Buffer.from(publicKeyPem));
    await assert.rejects(open({ secret: publicKeyPem, algorithm: 'RS256' }).login({ token }), {
      errcode: 'M_FORBIDDEN',
    });
    assert.throws(() => open({ secret: publicKeyPem, algorithm: 'HS256' }), /cannot be the secret/);
  });

  it('refuses a token that names an audience when none is configured', async () => {
    const token = await new SignJWT({ sub: 'alice', aud: 'x' })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(key);
    await assert.rejects(open({ secret, algorithm: 'HS256' }).login({ token }), { errcode: 'M_FORBIDDEN' });
  });

  it('throws JwtKeyProblem for unknown algorithms and unusable keys', () => {
    for (const more of [
      { algorithm: 'none', secret },
      { algorithm: 'HS1', secret },
      { algorithm: 'RS256', secret },
    ]) {
      assert.throws(() => open(more), JwtKeyProblem);
    }
  });
});
