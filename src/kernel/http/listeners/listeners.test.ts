import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { Agent, get as getTls } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, describe, it } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../../../test/clients/eventually.ts';
import { type Overrides, sectionDefaults } from '../../../../test/support/inputs/section-defaults.ts';
import { systemClock } from '../../clock.ts';
import { silentLogger } from '../../observability/index.ts';
import {
  createHttpServer,
  type HttpConfig,
  type HttpServer,
  healthRoute,
  httpSection,
  listenersOf,
  route,
} from '../index.ts';

/** Self-signed certificates for tests. */
const fixtures = new URL('../../../../test/fixtures/tls/', import.meta.url);

let folder = '';
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'hearth-listeners-'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

let server: HttpServer | undefined;

/** Whether a request to `late-ip` waits until its client disconnects. */
let isWaiting = false;
/** The address of the client that this request reads after that. */
let lateIp: string | undefined;

async function start(config: Overrides<HttpConfig>) {
  const routes = [
    healthRoute,
    route({ method: 'GET', path: '/_proto/client/ip', auth: 'none' }, ({ ip }) => ({ ip })),
    route({ method: 'GET', path: '/_proto/client/late-ip', auth: 'none' }, async (request) => {
      const { signal } = request;
      isWaiting = true;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      lateIp = request.ip;
      return {};
    }),
    route({ method: 'GET', path: '/_proto/key/v2/server', auth: 'none' }, () => ({})),
  ];
  server = createHttpServer({
    listeners: listenersOf(sectionDefaults(httpSection, config)),
    routes,
    authenticator: {
      authenticate: () => {
        throw new Error('no request needs authentication');
      },
    },
    log: silentLogger,
    clock: systemClock,
  });
  return server.start();
}

const client = [{ names: ['client' as const], compress: false }];
const status = async (url: string) => (await fetch(url)).status;

describe('listeners of an HTTP server', () => {
  afterEach(() => server?.stop(100));

  it('listens on several addresses with one port, each listener with its own resources [option: listeners[].bind_addresses, listeners[].resources[].names]', async () => {
    const addresses = await start({
      listeners: [
        { port: 0, type: 'http', bind_addresses: ['127.0.0.1', '127.0.0.2'], resources: client },
        { port: 0, type: 'http', bind_addresses: ['127.0.0.1'], resources: [{ names: ['keys'] }] },
      ],
    });
    assert.equal(addresses.length, 3);
    const [first, second, keys] = addresses as [string, string, string];
    assert.equal(new URL(first).port, new URL(second).port);
    assert.equal(await status(`${second}/_matrix/client/ip`), 200);
    assert.equal(await status(`${first}/_matrix/key/v2/server`), 404);
    assert.equal(await status(`${keys}/_matrix/key/v2/server`), 200);
    assert.equal(await status(`${keys}/_matrix/client/ip`), 404);
    assert.equal(await status(`${keys}/health`), 200);
  });

  it('listens on all addresses when no address is configured', async () => {
    const [address] = (await start({ listeners: [{ port: 0, type: 'http', resources: client }] })) as [
      string,
    ];
    assert.equal(await status(`http://127.0.0.1:${new URL(address).port}/health`), 200);
  });

  it('listens on Unix sockets with the configured mode, also when a crash left the socket file behind, but not on a socket on which another server listens [option: listeners[].path, listeners[].mode]', async () => {
    const path = join(folder, 'hearth.sock');
    const listeners = [{ path, mode: 660, type: 'http' as const, resources: client }];
    const crash = `require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`;
    spawnSync(process.execPath, ['-e', crash, path]);
    assert.equal(statSync(path).isSocket(), true);
    assert.deepEqual(await start({ listeners }), [`unix:${path}`]);
    assert.equal(statSync(path).mode & 0o777, 0o660);
    const headers = { 'x-forwarded-for': '203.0.113.9' };
    const body = await new Promise<string>((resolve, reject) => {
      request({ socketPath: path, path: '/_matrix/client/ip', headers }, (response) =>
        resolve(text(response)),
      )
        .on('error', reject)
        .end();
    });
    assert.deepEqual(JSON.parse(body), { ip: '203.0.113.9' });
    await assert.rejects(
      createHttpServer({
        listeners: listenersOf(sectionDefaults(httpSection, { listeners })),
        routes: [],
        authenticator: { authenticate: () => assert.fail() },
        log: silentLogger,
        clock: systemClock,
      }).start(),
      { code: 'EADDRINUSE' },
    );
  });

  it('uses TLS, and renewed certificates after a reload [option: listeners[].tls, tls_certificate_path, tls_private_key_path]', async () => {
    const [tls_certificate_path, tls_private_key_path] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    const renew = (name: string) => {
      cpSync(new URL(`${name}.cert.pem`, fixtures), tls_certificate_path);
      cpSync(new URL(`${name}.key.pem`, fixtures), tls_private_key_path);
    };
    renew('first');
    const [address] = await start({
      listeners: [{ port: 0, type: 'http', tls: true, bind_addresses: ['127.0.0.1'], resources: client }],
      tls_certificate_path,
      tls_private_key_path,
    });
    assert.match(address!, /^https:/);
    const certificateName = () =>
      new Promise<string>((resolve, reject) => {
        const socket = connectTls({
          port: Number(new URL(address!).port),
          host: '127.0.0.1',
          ca: readFileSync(tls_certificate_path),
        });
        socket.once('error', reject);
        socket.once('secureConnect', () => {
          resolve(String(socket.getPeerCertificate().subject.CN));
          socket.destroy();
        });
      });
    assert.equal(await certificateName(), 'first');
    renew('second');
    await server!.reload();
    assert.equal(await certificateName(), 'second');
  });

  it('knows the address of a client after the client has disconnected, with and without TLS', async () => {
    const [tls_certificate_path, tls_private_key_path] = ['cert', 'key'].map((part) =>
      fileURLToPath(new URL(`first.${part}.pem`, fixtures)),
    );
    for (const tls of [false, true]) {
      [isWaiting, lateIp] = [false, undefined];
      const bind_addresses = ['127.0.0.1'];
      const [address] = await start({
        listeners: [{ port: 0, type: 'http', tls, bind_addresses, resources: client }],
        ...(tls && { tls_certificate_path, tls_private_key_path }),
      });
      const { port } = new URL(address!);
      const to = { port: Number(port), host: '127.0.0.1', localAddress: '127.0.0.2' };
      const socket = tls ? connectTls({ ...to, rejectUnauthorized: false }) : connect(to);
      socket.write('GET /_matrix/client/late-ip HTTP/1.1\r\nhost: a\r\n\r\n');
      await eventually('the request', () => isWaiting);
      socket.destroy();
      await eventually('the address', () => lateIp !== undefined);
      assert.equal(lateIp, '127.0.0.2');
      await server!.stop(100);
    }
  });

  it('closes connections that have sent no request when it stops, with and without TLS', {
    timeout: 600_000,
  }, async () => {
    const [tls_certificate_path, tls_private_key_path] = ['cert', 'key'].map((part) =>
      fileURLToPath(new URL(`first.${part}.pem`, fixtures)),
    );
    for (const tls of [false, true]) {
      const [address] = await start({
        listeners: [{ port: 0, type: 'http', tls, bind_addresses: ['127.0.0.1'], resources: client }],
        ...(tls && { tls_certificate_path, tls_private_key_path }),
      });
      const to = { port: Number(new URL(address!).port), host: '127.0.0.1' };
      const socket = tls ? connectTls({ ...to, rejectUnauthorized: false }) : connect(to);
      socket.on('error', () => {});
      await once(socket, tls ? 'secureConnect' : 'connect');
      const closed = new Promise((resolve) => socket.once('close', resolve));
      await server!.stop(2 ** 31 - 1);
      await closed;
    }
  });

  it('answers every request while a certificate is replaced, also when a reload finds only the new certificate and not its key yet', async () => {
    const [tls_certificate_path, tls_private_key_path] = [join(folder, 'used.pem'), join(folder, 'used.key')];
    const replace = (part: 'cert' | 'key', name: string) =>
      cpSync(
        new URL(`${name}.${part}.pem`, fixtures),
        part === 'cert' ? tls_certificate_path : tls_private_key_path,
      );
    for (const part of ['cert', 'key'] as const) replace(part, 'first');
    const [address] = await start({
      listeners: [{ port: 0, type: 'http', tls: true, bind_addresses: ['127.0.0.1'], resources: client }],
      tls_certificate_path,
      tls_private_key_path,
    });
    const ca = ['first', 'second'].map((name) => readFileSync(new URL(`${name}.cert.pem`, fixtures)));
    const kept = new Agent({ keepAlive: true, ca });
    /** Requests over a new connection, unless `agent` has one. @returns the name in the certificate */
    const certificateName = (agent = new Agent({ ca })) =>
      new Promise<string>((resolve, reject) => {
        getTls(`${address}/_matrix/client/ip`, { agent }, (response) => {
          const { subject } = (response.socket as TLSSocket).getPeerCertificate();
          response.resume().once('end', () => {
            if (response.statusCode === 200) resolve(String(subject.CN));
            else reject(new Error(`status ${response.statusCode}`));
          });
        }).once('error', reject);
      });
    let answered = 0;
    const requestUntilRenewed = async () => {
      for (let name = ''; name !== 'second'; answered += 1) name = await certificateName();
    };
    assert.equal(await certificateName(kept), 'first');
    const allRenewed = Promise.all([requestUntilRenewed(), requestUntilRenewed(), requestUntilRenewed()]);
    replace('cert', 'second');
    await assert.rejects(server!.reload(), /key values mismatch/);
    for (const before = answered; answered < before + 6; ) assert.equal(await certificateName(), 'first');
    replace('key', 'second');
    await server!.reload();
    await allRenewed;
    assert.equal(await certificateName(kept), 'first', 'open connections stay');
    kept.destroy();
  });
});
