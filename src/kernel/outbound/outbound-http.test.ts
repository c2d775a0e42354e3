import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { type Overrides, sectionDefaults } from '../../../test/support/inputs/section-defaults.ts';
import {
  FakeResolver,
  type LoopbackServer,
  serveOnLoopback,
} from '../../../test/support/network/loopback.ts';
import { makeTestAuthority, type TestAuthority } from '../../../test/support/network/test-authority.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { systemClock } from '../clock.ts';
import { type OutboundConfig, outboundSection } from './config.ts';
import { OutboundHttp, type OutboundRequest, TlsSettings } from './index.ts';

const allowsLoopback = { ip_range_whitelist: ['127.0.0.0/8'] };

describe('OutboundHttp', () => {
  const open: { close(): Promise<void> }[] = [];
  const resolver = new FakeResolver();
  let authority: TestAuthority;
  before(() => {
    authority = makeTestAuthority();
    for (const name of ['a.example', 'b.example']) resolver.hosts.set(name, ['127.0.0.1']);
  });
  after(() => authority.remove());
  afterEach(async () => {
    for (const closable of open.splice(0).reverse()) await closable.close();
  });

  const keep = <T extends { close(): Promise<void> }>(closable: T): T => {
    open.push(closable);
    return closable;
  };
  const serve = async (answer: (request: IncomingMessage, response: ServerResponse) => void) =>
    keep(await serveOnLoopback(answer));
  const client = (config: Overrides<OutboundConfig> = allowsLoopback, clock = systemClock) =>
    keep(
      new OutboundHttp({
        caches: plainCaches(clock),
        config: sectionDefaults(outboundSection, config),
        clock,
        resolver,
      }),
    );
  const limits: OutboundRequest = { timeout: 60_000, maxBody: 1_000 };
  const url = ({ port }: LoopbackServer, path = '/', host = 'a.example') =>
    new URL(`http://${host}:${port}${path}`);

  it('sends method, headers, body and user agent [option: user_agent_suffix]', async () => {
    const server = await serve(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      const { 'user-agent': agent, host, 'x-test': header } = request.headers;
      response.setHeader('X-Answer', 'yes');
      response.end(JSON.stringify([request.method, request.url, agent, host, header, body]));
    });
    const http = client({ ...allowsLoopback, user_agent_suffix: 'run by\r\nEve: me' });
    const answer = await http.fetch(url(server, '/x?y=%7e'), {
      ...limits,
      method: 'PUT',
      headers: { 'x-test': '1' },
      body: '{}',
    });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['x-answer'], 'yes');
    const [method, path, agent, ...rest] = JSON.parse(answer.body.toString());
    assert.deepEqual([method, path], ['PUT', '/x?y=%7e']);
    assert.match(agent, /^Hearth\/\S+ run byEve: me$/);
    assert.deepEqual(rest, [`a.example:${server.port}`, '1', '{}']);
  });

  it('connects to allowed addresses only, by address or by name [option: ip_range_blacklist, ip_range_whitelist]', async () => {
    let requests = 0;
    const server = await serve((_request, response) => {
      requests++;
      response.end();
    });
    resolver.hosts.set('mapped.example', ['::ffff:127.0.0.1']);
    resolver.hosts.set('nowhere.example', ['0.0.0.0', '::']);
    const http = client({});
    for (const host of [
      'a.example',
      '127.0.0.1',
      '[::ffff:127.0.0.1]',
      '[::1]',
      '0.0.0.0',
      'mapped.example',
      '2130706433',
    ]) {
      await assert.rejects(http.fetch(url(server, '/', host), limits), { failure: 'refused-address' }, host);
    }
    const unrestricted = client({ ip_range_blacklist: [] });
    for (const host of ['nowhere.example', '0.0.0.0', '[::]']) {
      await assert.rejects(
        unrestricted.fetch(url(server, '/', host), limits),
        { failure: 'refused-address' },
        host,
      );
    }
    assert.equal(requests, 0);
    assert.equal((await unrestricted.fetch(url(server), limits)).status, 200);
    assert.equal((await client().fetch(url(server), limits)).status, 200);
  });

  it('connects to the checked address although the name resolves differently afterwards (DNS rebinding)', async () => {
    const server = await serve((_request, response) => response.end());
    const answers = ['127.0.0.1', '10.0.0.1', '10.0.0.1'];
    const requestedHosts: string[] = [];
    const rebinding = {
      services: async () => [],
      addresses: async (host: string) => {
        requestedHosts.push(host);
        return [{ address: answers.shift()!, family: 4 as const }];
      },
    };
    const config = sectionDefaults(outboundSection, allowsLoopback);
    const http = keep(
      new OutboundHttp({ caches: plainCaches(systemClock), config, clock: systemClock, resolver: rebinding }),
    );
    assert.equal((await http.fetch(url(server), limits)).status, 200);
    assert.equal(requestedHosts.length, 1);
    await assert.rejects(http.fetch(url(server, '/', 'b.example'), limits), { failure: 'refused-address' });
  });

  it('follows at most `redirects` redirects, checks the target of each, and drops credentials for another origin', async () => {
    const seen: (string | undefined)[] = [];
    const server = await serve((request, response) => {
      seen.push(request.headers.authorization);
      const next: Record<string, string> = {
        '/one': '/two',
        '/two': `http://b.example:${server.port}/end`,
        '/loop': '/loop',
        '/inside': `http://10.0.0.1:${server.port}/`,
        '/file': 'file:///etc/passwd',
      };
      const to = next[request.url!];
      response.writeHead(to ? 302 : 200, to ? { location: to } : {}).end('end');
    });
    const http = client();
    const headers = { Authorization: 'Bearer secret' };
    const found = await http.fetch(url(server, '/one'), { ...limits, headers, redirects: 2 });
    assert.equal(found.url.host, `b.example:${server.port}`);
    assert.deepEqual(seen, ['Bearer secret', 'Bearer secret', undefined]);
    const failures = {
      '/one': 'redirect',
      '/loop': 'redirect',
      '/file': 'redirect',
      '/inside': 'refused-address',
    };
    for (const [path, failure] of Object.entries(failures)) {
      await assert.rejects(http.fetch(url(server, path), { ...limits, redirects: 1 }), { failure }, path);
    }
    assert.equal((await http.fetch(url(server, '/one'), limits)).status, 302);
    const posted = await http.fetch(url(server, '/one'), {
      ...limits,
      method: 'POST',
      body: '',
      redirects: 3,
    });
    assert.equal(posted.status, 302);
  });

  it('rejects a response above maxBody, compressed or not, and a response that is compressed twice or wrongly', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    const server = await serve((request, response) => {
      if (request.url === '/bomb') response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
      else if (request.url === '/twice')
        response.writeHead(200, { 'content-encoding': 'gzip, gzip' }).end(bomb);
      else if (request.url === '/broken')
        response.writeHead(200, { 'content-encoding': 'gzip' }).end('no gzip');
      else if (request.url === '/fits')
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('fits'));
      else if (request.url === '/announced') response.writeHead(200, { 'content-length': '5000' }).end('a');
      else for (let i = 0; i < 100; i++) response.write('a'.repeat(100));
    });
    const http = client();
    const failures = {
      '/bomb': 'too-large',
      '/twice': 'protocol',
      '/broken': 'protocol',
      '/endless': 'too-large',
      '/announced': 'too-large',
    };
    for (const [path, failure] of Object.entries(failures)) {
      await assert.rejects(http.fetch(url(server, path), limits), { failure }, path);
    }
    assert.equal((await http.fetch(url(server, '/fits'), limits)).body.toString(), 'fits');
  });

  it('rejects a response that arrives in thousands of chunks of one byte, and a response whose compressed form is much longer than maxBody', async () => {
    const emptyBlocks = Buffer.concat(Array(10_000).fill(Buffer.from([0, 0, 0, 0xff, 0xff])));
    const server = await serve((request, response) => {
      const isCompressed = request.url === '/compressed';
      if (isCompressed) {
        const start = gzipSync('').subarray(0, 10);
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(Buffer.concat([start, emptyBlocks]));
      } else for (let count = 0; count < 5_000; count++) response.write('a');
    });
    const http = client();
    for (const path of ['/chunks', '/compressed'])
      await assert.rejects(
        http.fetch(url(server, path), { ...limits, maxBody: 10_000 }),
        { failure: 'too-large' },
        path,
      );
  });

  it('aborts after the timeout, also during the body, and when the caller aborts', async () => {
    const clock = manualClock();
    let arrived = () => {};
    const server = await serve((request, response) => {
      if (request.url === '/slow') response.write('a');
      arrived();
    });
    const http = client(allowsLoopback, { ...clock });
    for (const path of ['/silent', '/slow']) {
      const arrival = new Promise<void>((resolve) => {
        arrived = resolve;
      });
      const answer = assert.rejects(http.fetch(url(server, path), limits), { failure: 'timeout' }, path);
      await arrival;
      clock.advance(60_000);
      await answer;
    }
    const controller = new AbortController();
    const answer = http.fetch(url(server, '/silent'), { ...limits, signal: controller.signal });
    controller.abort();
    await assert.rejects(answer, { failure: 'aborted' });
    const already = AbortSignal.abort();
    await assert.rejects(http.fetch(url(server), { ...limits, signal: already }), { failure: 'aborted' });
  });

  it('aborts requests that are in flight when it is closed, also during the body', async () => {
    for (const path of ['/silent', '/slow']) {
      const arrived = Promise.withResolvers<void>();
      const server = await serve((_request, response) => {
        if (path === '/slow') response.write('a');
        arrived.resolve();
      });
      const http = client();
      const answer = assert.rejects(http.fetch(url(server, path), limits), { failure: 'aborted' }, path);
      await arrived.promise;
      await http.close();
      await answer;
    }
  });

  it('streams the body, and reports a broken body only to a caller that reads it', async () => {
    const server = await serve((request, response) => {
      if (request.url === '/cut') response.write('a', () => request.socket.destroy());
      else response.end('whole');
    });
    const http = client();
    const whole = await http.open(url(server), limits);
    assert.equal(await text(whole.body), 'whole');
    const cut = await http.open(url(server, '/cut'), limits);
    await assert.rejects(text(cut.body), { failure: 'connection' });
    const unread = await http.open(url(server, '/cut'), limits);
    await new Promise((resolve) => unread.body.once('close', resolve));
    assert.equal(unread.body.destroyed, true);
  });

  it('rejects with the kind of failure: unknown-host, connection or protocol', async () => {
    const server = await serve((request, response) => {
      if (request.url === '/cut') request.socket.destroy();
      else response.socket!.end('nonsense\r\n\r\n');
    });
    const http = client();
    const fetchFrom = (host: string, path = '/') => http.fetch(url(server, path, host), limits);
    await assert.rejects(fetchFrom('missing.example'), { failure: 'unknown-host', isTransient: true });
    await assert.rejects(fetchFrom('a.example', '/cut'), { failure: 'connection', isTransient: true });
    await assert.rejects(fetchFrom('a.example', '/nonsense'), { failure: 'protocol', isTransient: false });
    await server.close();
    await assert.rejects(fetchFrom('a.example'), { failure: 'connection' });
  });

  it('trusts the configured certificate authorities only', async () => {
    const server = keep(
      await serveOnLoopback((_request, response) => response.end('safe'), authority.issue('a.example')),
    );
    const http = client();
    const trusting = new TlsSettings({ verify: true, authorities: [authority.pem] });
    const unverified = new TlsSettings({ verify: false });
    const secure = (host: string, tls?: TlsSettings) =>
      http.fetch(new URL(`https://${host}:${server.port}/`), { ...limits, tls });
    assert.equal((await secure('a.example', trusting)).body.toString(), 'safe');
    assert.equal((await secure('b.example', unverified)).status, 200);
    await assert.rejects(secure('a.example'), { failure: 'tls' });
    await assert.rejects(secure('b.example', trusting), { failure: 'tls' });
    await assert.rejects(secure('127.0.0.1', trusting), { failure: 'tls' });
  });

  describe('OutboundHttp with a proxy', () => {
    async function proxy() {
      const seen: string[] = [];
      const server = keep(
        await serveOnLoopback((request, response) => {
          seen.push(`${request.method} ${request.url} ${request.headers['proxy-authorization'] ?? ''}`);
          response.end('from the proxy');
        }),
      );
      server.server.on('connect', (request, socket, head) => {
        seen.push(`CONNECT ${request.url} ${request.headers['proxy-authorization'] ?? ''}`);
        if (request.url!.startsWith('forbidden')) return void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
        const target = connect(Number(request.url!.split(':').at(-1)), '127.0.0.1', () => {
          socket.write('HTTP/1.1 200 OK\r\n\r\n');
          target.write(head);
          target.pipe(socket).pipe(target);
        });
        for (const end of [socket, target]) end.on('error', () => undefined);
      });
      return { seen, proxyUrl: (user = '') => `http://${user}127.0.0.1:${server.port}` };
    }

    it('sends http requests to the proxy, tunnels https requests through it, and checks no address [option: http_proxy, https_proxy]', async () => {
      const { seen, proxyUrl } = await proxy();
      const server = keep(
        await serveOnLoopback(
          (_request, response) => response.end('safe'),
          authority.issue('hidden.example'),
        ),
      );
      const http = client({ http_proxy: proxyUrl('me:p%40ss@'), https_proxy: proxyUrl() });
      const tls = new TlsSettings({ verify: true, authorities: [authority.pem] });
      const plain = await http.fetch(new URL('http://hidden.example:81/x?y'), limits);
      assert.equal(plain.body.toString(), 'from the proxy');
      const secure = await http.fetch(new URL(`https://hidden.example:${server.port}/`), { ...limits, tls });
      assert.equal(secure.body.toString(), 'safe');
      const credentials = Buffer.from('me:p@ss').toString('base64');
      assert.deepEqual(seen, [
        `GET http://hidden.example:81/x?y Basic ${credentials}`,
        `CONNECT hidden.example:${server.port} `,
      ]);
      await assert.rejects(http.fetch(new URL('https://forbidden.example/'), limits), { failure: 'proxy' });
      assert.equal((await http.fetch(new URL('http://10.0.0.1/'), limits)).status, 200);
    });

    it('connects directly to exempt hosts [option: no_proxy_hosts]', async () => {
      const { seen, proxyUrl } = await proxy();
      const server = await serve((_request, response) => response.end('direct'));
      const http = client({
        ...allowsLoopback,
        http_proxy: proxyUrl(),
        no_proxy_hosts: ['a.example', '127.0.0.0/8'],
      });
      resolver.hosts.set('sub.a.example', ['127.0.0.1']);
      for (const host of ['a.example', 'A.example', 'sub.a.example', '127.0.0.1']) {
        assert.equal((await http.fetch(url(server, '/', host), limits)).body.toString(), 'direct', host);
      }
      assert.equal(seen.length, 0);
      for (const host of ['b.example', 'nota.example', '10.0.0.1'])
        await http.fetch(url(server, '/', host), limits);
      assert.equal(seen.length, 3);
    });

    it('rejects a proxy URL that is not HTTP', () => {
      assert.throws(() => client({ http_proxy: 'ftp://x' }), /http_proxy/);
    });
  });
});
