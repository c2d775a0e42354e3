import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { stringify } from 'yaml';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { administeredServer, run } from './test/administered-server.ts';

const clientApi = '/_matrix/client/v3';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`on ${database}`, () => {
    const subject = administeredServer(database);
    const { succeeds, fails, file, request } = subject;
    const logins = () => join(subject.home, 'hearth', 'logins.json');

    describe('hearth login', () => {
      it('stores the access token in a file that only its owner can read, and ends the session at the next login or hearth logout', async () => {
        assert.equal(statSync(logins()).mode & 0o777, 0o600);
        const other = mkdtempSync(join(tmpdir(), 'hearth-login-'));
        const password = join(subject.home, 'password');
        const flags = ['--server', `${subject.server.baseUrl}/`, '-u', 'admin', '--password-file', password];
        const logIn = () => run(other, 'login', ...flags);
        const storedToken = () => {
          const stored: unknown = JSON.parse(readFileSync(join(other, 'hearth', 'logins.json'), 'utf8'));
          return Object.values(stored as Record<string, { accessToken: string }>)[0]!.accessToken;
        };
        const login = await logIn();
        assert.equal(
          login.out,
          `Logged in at ${subject.server.baseUrl}/ as @admin:test. To end this: npm run hearth -- logout\n`,
        );
        const first = storedToken();
        assert.match((await run(other, 'user', 'list')).out, /@ann:test/);
        await logIn();
        const second = storedToken();
        const whoami = (token: string) => subject.server.api('GET', `${clientApi}/account/whoami`, { token });
        assert.equal((await whoami(first)).status, 401);
        assert.equal((await whoami(second)).status, 200);
        assert.match((await run(other, 'logout')).out, /^Logged out/);
        assert.equal((await whoami(second)).status, 401);
        assert.match((await run(other, 'user', 'list')).failure, /which server\?/);
        rmSync(other, { recursive: true });
      });

      it('refuses wrong passwords, and refuses users who are not administrators and ends their sessions', async () => {
        const loginAs = (user: string, password: string) =>
          fails(
            'login',
            '--server',
            subject.server.baseUrl,
            '-u',
            user,
            '--password-file',
            file('given', password),
          );
        assert.match(await loginAs('admin', 'wrong'), /^the login failed: /);
        assert.match(
          await loginAs('ann', 'correct horse'),
          /@ann:test is not a server administrator\. .*npm run hearth -- user admin @ann:test/,
        );
        const { devices } = await request('GET', `${clientApi}/devices`);
        assert.equal((devices as unknown[]).length, 1);
      });

      it('says that no admin API answers when a proxy does not forward its paths, and ends the new session', async () => {
        const requestedUrls: string[] = [];
        const proxy = createServer(({ url = '' }, response) => {
          requestedUrls.push(url);
          response.writeHead(url.startsWith('/_synapse') ? 404 : 200);
          response.end(url.endsWith('/login') ? '{"access_token":"a","user_id":"@admin:test"}' : '{}');
        });
        await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
        try {
          const { port } = proxy.address() as AddressInfo;
          const password = file('given', 'correct horse');
          const flags = ['--server', `http://127.0.0.1:${port}`, '-u', 'admin', '--password-file', password];
          assert.match(await fails('login', ...flags), /answered 404: no admin API answers there/);
          assert.equal(requestedUrls.at(-1), `${clientApi}/logout`);
        } finally {
          proxy.close();
        }
      });

      it('reads an access token from a file, for one command or to store it', async () => {
        const token = file('token', `${subject.adminToken}\n`);
        assert.match(
          (
            await run(
              join(subject.home, 'none'),
              'user',
              'list',
              '--server',
              subject.server.baseUrl,
              '--token-file',
              token,
            )
          ).out,
          /@ann:test/,
        );
        const other = join(subject.home, 'other');
        assert.match(
          (await run(other, 'login', '--server', subject.server.baseUrl, '--token-file', token)).out,
          /as @admin:test/,
        );
        assert.match((await run(other, 'user', 'show', 'ann')).out, /@ann:test/);
        const wrong = await fails('user', 'list', '--token-file', file('token', 'nonsense'));
        assert.match(wrong, /not valid any more: call npm run hearth -- login again/);
        const notAdmin = await fails('user', 'list', '--token-file', file('token', subject.ann.token));
        assert.match(notAdmin, /needs the login of a server administrator/);
      });

      it('refuses to read stored tokens from a file that other users of the machine can read', async () => {
        chmodSync(logins(), 0o644);
        assert.match(await fails('user', 'list'), /other users of this machine can read .* chmod 600/);
        chmodSync(logins(), 0o600);
      });

      it('the error names a server without a stored login, a server that cannot be reached, and an invalid URL', async () => {
        const closed = 'http://127.0.0.1:1';
        assert.match(
          await fails('user', 'list', '--server', closed),
          /there is no login at http:\/\/127\.0\.0\.1:1: call npm run hearth -- login/,
        );
        const token = file('token', subject.adminToken);
        assert.match(
          await fails('user', 'list', '--server', closed, '--token-file', token),
          /cannot be reached .*Is the server running\?/,
        );
        assert.match(
          await fails('user', 'list', '--server', 'localhost', '--token-file', token),
          /is not the URL of a server/,
        );
      });

      it('finds the server by the first listener of its configuration', async () => {
        const port = Number(new URL(subject.server.baseUrl).port);
        const configuration = file(
          'homeserver.yaml',
          stringify({
            server_name: 'test',
            signing_key_path: join(import.meta.dirname, '..', '..', '..', 'test/fixtures/test.signing.key'),
            listeners: [
              { port, type: 'http', bind_addresses: ['127.0.0.1'], resources: [{ names: ['client'] }] },
            ],
          }),
        );
        assert.match(await succeeds('user', 'list', '-c', configuration), /@ann:test/);
      });
    });
  });
}
