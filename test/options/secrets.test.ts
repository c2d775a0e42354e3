import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { stringify } from 'yaml';
import { callApi } from '../support/servers/api-call.ts';
import { startConfigured } from '../support/servers/configured-server.ts';

/** Options of secrets that sign tokens, tested on a whole homeserver that is started again with other options. */
describe('options of secrets', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-secrets-'));
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** Runs `work` while a server runs on the database and signing key of the folder. @returns the result of `work` */
  async function withServer<T>(options: object, work: (base: string) => Promise<T>): Promise<T> {
    const server = await startConfigured(
      stringify({
        server_name: 'test',
        database: { name: 'sqlite3', args: { database: join(folder, 'test.db') } },
        listeners: [
          { type: 'http', port: 0, bind_addresses: ['127.0.0.1'], resources: [{ names: ['client'] }] },
        ],
        enable_registration: true,
        enable_registration_without_verification: true,
        allow_guest_access: true,
        bcrypt_rounds: 4,
        login_via_existing_session: { enabled: true, require_ui_auth: false },
        ...options,
      }),
      folder,
    );
    try {
      return await work(server.addresses[0]!);
    } finally {
      await server.stop();
    }
  }
  const post = async (base: string, path: string, body: object, token?: string) =>
    (await callApi(base, 'POST', path, { body, ...(token && { token }) })).body;
  const register = async (base: string, query: string, body: object) =>
    String((await post(base, `/_matrix/client/v3/register${query}`, body))['access_token']);
  const whoami = async (base: string, token: string) =>
    (await callApi(base, 'GET', '/_matrix/client/v3/account/whoami', { token })).status;

  it('ends the sessions of guests and the login tokens when the key of tokens is replaced [option: macaroon_secret_key, macaroon_secret_key_path]', async () => {
    writeFileSync(join(folder, 'same'), 'first key\n');
    const firstOptions = { macaroon_secret_key: 'first key' };
    const user = { username: 'alice', password: 'correct horse', auth: { type: 'm.login.dummy' } };
    const { guest, alice, loginToken } = await withServer(firstOptions, async (base) => {
      const token = await register(base, '', user);
      return {
        guest: await register(base, '?kind=guest', {}),
        alice: token,
        loginToken: (await post(base, '/_matrix/client/v1/login/get_token', {}, token))['login_token'],
      };
    });
    for (const [options, expected] of [
      [{ macaroon_secret_key_path: join(folder, 'same') }, [200, 200]],
      [{ registration_shared_secret: 'first key' }, [200, 200]],
      [{ macaroon_secret_key: 'second key' }, [401, 200]],
      [{ registration_shared_secret: 'second key' }, [401, 200]],
      [{}, [401, 200]],
    ] as const) {
      await withServer(options, async (base) => {
        const statuses = [await whoami(base, guest), await whoami(base, alice)];
        assert.deepEqual(statuses, expected, JSON.stringify(options));
        if (expected[0] === 200) return;
        const body = await post(base, '/_matrix/client/v3/login', {
          type: 'm.login.token',
          token: loginToken,
        });
        assert.equal(body['errcode'], 'M_FORBIDDEN');
      });
    }
    const loginWithFirstKey = await withServer(firstOptions, (base) =>
      post(base, '/_matrix/client/v3/login', { type: 'm.login.token', token: loginToken }),
    );
    assert.equal(loginWithFirstKey['user_id'], '@alice:test');
  });

  it('keeps the sessions of guests over a restart when no key is configured, because the key is derived from the signing key', async () => {
    const guest = await withServer({}, (base) => register(base, '?kind=guest', {}));
    assert.equal(await withServer({}, (base) => whoami(base, guest)), 200);
  });

  it('computes TURN credentials from the secret in a file [option: turn_shared_secret_path]', async () => {
    writeFileSync(join(folder, 'turn'), 'the TURN secret\n');
    const options = {
      turn_uris: ['turn:turn.example.org'],
      turn_shared_secret_path: join(folder, 'turn'),
    };
    const { username, password } = await withServer(options, async (base) => {
      const token = await register(base, '?kind=guest', {});
      return (await callApi(base, 'GET', '/_matrix/client/v3/voip/turnServer', { token })).body;
    });
    const expected = createHmac('sha1', 'the TURN secret').update(String(username)).digest('base64');
    assert.equal(password, expected);
  });
});
