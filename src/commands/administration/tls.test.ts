import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { stringify } from 'yaml';
import { commonTestAuthority } from '../../../test/support/network/test-authority.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { run } from './test/administered-server.ts';

describe('commands that use the admin API over TLS', () => {
  const authority = commonTestAuthority();
  let server: TestServer;
  let home = '';
  before(async () => {
    home = mkdtempSync(join(tmpdir(), 'hearth-administration-'));
    const { cert, key } = authority.issue('public.example');
    writeFileSync(join(home, 'cert.pem'), cert);
    writeFileSync(join(home, 'key.pem'), key);
    server = await startTestServer({
      database: 'sqlite',
      config: {
        http: {
          tls_certificate_path: join(home, 'cert.pem'),
          tls_private_key_path: join(home, 'key.pem'),
          listeners: [
            {
              port: 0,
              tls: true,
              type: 'http',
              bind_addresses: ['127.0.0.1'],
              resources: [{ names: ['client'] }],
            },
          ],
        },
      },
    });
  });
  after(async () => {
    await server.stop();
    rmSync(home, { recursive: true, force: true });
  });

  it('accept the certificate of the configuration even if it is for another host, and reject other certificates', async () => {
    const configuration = join(home, 'homeserver.yaml');
    const write = (certificate: string) =>
      writeFileSync(
        configuration,
        stringify({
          server_name: 'test',
          tls_certificate_path: certificate,
          tls_private_key_path: join(home, 'key.pem'),
          listeners: [
            {
              port: Number(new URL(server.baseUrl).port),
              tls: true,
              type: 'http',
              bind_addresses: ['127.0.0.1'],
              resources: [{ names: ['client'] }],
            },
          ],
        }),
      );
    writeFileSync(join(home, 'token'), 'nonsense');
    const list = () => run(home, 'user', 'list', '-c', configuration, '--token-file', join(home, 'token'));
    write(join(home, 'cert.pem'));
    // The server has received the request and rejected the token.
    assert.match((await list()).failure, /is not valid any more/);
    writeFileSync(join(home, 'other.pem'), authority.issue('other.example').cert);
    write(join(home, 'other.pem'));
    assert.match((await list()).failure, /cannot be reached .*certificate/);
  });
});
