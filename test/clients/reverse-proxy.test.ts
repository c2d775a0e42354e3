import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request as requestWithoutTls } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe } from 'node:test';
import { createLogger } from '../../src/kernel/observability/index.ts';
import { freePort } from '../support/network/free-port.ts';
import { makeTestAuthority, type TestAuthority } from '../support/network/test-authority.ts';
import { startTestServer, type TestServer } from '../support/servers/server.ts';
import { after, before, test } from './bounded-test.ts';
import { eventually } from './eventually.ts';

const contrib = join(import.meta.dirname, '..', '..', 'contrib');

interface LoggedRequest {
  readonly url?: string;
  readonly ip?: string;
  readonly msg: string;
}

/** A reverse proxy that is started with its example configuration in `contrib`. */
interface ReverseProxy {
  readonly name: string;
  /** Whether clients reach the proxy over TLS. */
  readonly isEncrypted: boolean;
  /**
   * Writes the configuration into a folder.
   * @param port on which the proxy listens
   * @param server base URL of the server behind the proxy
   * @returns the command that runs the proxy in the foreground
   */
  prepare(
    folder: string,
    port: number,
    server: string,
    authority: TestAuthority,
  ): readonly [string, string[]];
}

const nginx: ReverseProxy = {
  name: 'nginx',
  isEncrypted: true,
  prepare(folder, port, server, authority) {
    const { key, cert } = authority.issue('example.org');
    writeFileSync(join(folder, 'key.pem'), key);
    writeFileSync(join(folder, 'cert.pem'), cert);
    const site = readFileSync(join(contrib, 'nginx', 'hearth.conf'), 'utf8')
      .replace('listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`)
      .replace(/^ *listen (?!127).*\n/gm, '')
      .replace(/ssl_certificate .*;/, `ssl_certificate ${folder}/cert.pem;`)
      .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${folder}/key.pem;`)
      .replace('http://127.0.0.1:8008', server);
    const file = join(folder, 'nginx.conf');
    writeFileSync(file, mainConfiguration(folder, site));
    return ['/usr/sbin/nginx', ['-e', 'stderr', '-c', file]];
  },
};

const caddy: ReverseProxy = {
  name: 'Caddy',
  isEncrypted: false,
  prepare(folder, port, server) {
    const site = readFileSync(join(contrib, 'caddy', 'Caddyfile'), 'utf8')
      // The site has no TLS, because Caddy would request its certificate from an authority on the internet.
      .replace('{$DOMAIN:example.org}, {$DOMAIN:example.org}:8448', `http://127.0.0.1:${port}`)
      .replace('{$HEARTH:127.0.0.1:8008}', new URL(server).host);
    const file = join(folder, 'Caddyfile');
    writeFileSync(file, `{\n\tadmin off\n\tstorage file_system ${folder}/storage\n}\n${site}`);
    return ['/usr/bin/caddy', ['run', '--adapter', 'caddyfile', '--config', file]];
  },
};

for (const proxy of [nginx, caddy])
  describe(`${proxy.name} in front of a server, with its example in contrib`, () => {
    let folder: string;
    let authority: TestAuthority;
    let server: TestServer;
    let running: ChildProcess;
    let port: number;
    const lines: LoggedRequest[] = [];

    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'hearth-proxy-'));
      authority = makeTestAuthority();
      server = await startTestServer({
        database: 'sqlite',
        log: createLogger({
          level: 'debug',
          destination: { write: (line) => void lines.push(JSON.parse(line)) },
        }),
        config: {
          http: {
            listeners: [
              {
                port: 0,
                type: 'http',
                bind_addresses: ['127.0.0.1'],
                x_forwarded: true,
                resources: [{ names: ['client', 'federation'] }],
              },
            ],
          },
        },
      });
      port = await freePort();
      const [program, parameters] = proxy.prepare(folder, port, server.baseUrl, authority);
      running = spawn(program, parameters, {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { ...process.env, HOME: folder },
      });
      let problems = '';
      running.stderr!.on('data', (chunk) => {
        problems += String(chunk);
      });
      await eventually(proxy.name, async () => {
        if (running.exitCode !== null) throw new Error(problems);
        return (await sendRequest('GET', '/').catch(() => undefined)) !== undefined;
      });
    });
    after(async () => {
      running?.kill('SIGKILL');
      await server?.stop();
      authority?.remove();
      rmSync(folder, { recursive: true });
    });

    const sendRequest = (method: string, path: string, headers: Record<string, string> = {}, body?: Buffer) =>
      new Promise<{ status: number; body: string }>((resolve, reject) => {
        const sent = (proxy.isEncrypted ? request : requestWithoutTls)(
          { host: '127.0.0.1', port, servername: 'example.org', ca: authority.pem, method, path, headers },
          async (response) => resolve({ status: response.statusCode!, body: await text(response) }),
        );
        sent.on('error', reject);
        sent.end(body);
      });
    const loggedRequest = (url: string) =>
      eventually(`the request ${url}`, () =>
        lines.find((line) => line.msg === 'Request' && line.url === url),
      );

    test('forwards requests with their paths as the client sent them', async () => {
      const { status, body } = await sendRequest('GET', '/_matrix/client/versions');
      assert.equal(status, 200);
      assert.ok(JSON.parse(body).versions.length > 0);
      const path = '/_matrix/client/v3/profile/@a%2Fb%3A%21c%20:test';
      await sendRequest('GET', path);
      await loggedRequest(path);
      assert.equal((await sendRequest('GET', '/_matrix/federation/v1/version')).status, 200);
    });

    test('passes the address of the client to the server, and no address that the client claims', async () => {
      const path = '/_matrix/client/v3/login?by=address';
      await sendRequest('GET', path, { 'x-forwarded-for': '192.0.2.7' });
      assert.equal((await loggedRequest(path)).ip, '127.0.0.1');
    });

    test('passes large uploads', async () => {
      const { token } = await server.register('ann');
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'text/plain' };
      const { status } = await sendRequest(
        'POST',
        '/_matrix/media/v3/upload',
        headers,
        Buffer.alloc(5_000_000, 'a'),
      );
      assert.equal(status, 200);
    });

    test('keeps the admin API private', async () => {
      for (const path of [
        '/_synapse/admin/v1/server_version',
        '/_server/admin/v1/server_version',
        '/metrics',
      ])
        assert.equal((await sendRequest('GET', path)).status, 404, path);
      assert.ok(!lines.some(({ url }) => url?.includes('admin')));
    });
  });

/** Returns the configuration of a nginx that runs in the foreground and writes to its folder only. */
function mainConfiguration(folder: string, site: string): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  return `daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr;
events {}
http { access_log off; ${paths.join(' ')}
${site} }`;
}
