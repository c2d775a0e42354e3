import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { createKernelServer } from '../../test/support/servers/kernel-server.ts';
import { startTestServer } from '../../test/support/servers/server.ts';
import { consoleRoutes } from './index.ts';

describe('the console at /_server/admin/ui', () => {
  let base = '';
  const server = createKernelServer({ routes: consoleRoutes() });
  before(async () => {
    base = (await server.start())[0]!;
  });
  after(() => server.stop(100));

  const get = (path: string, init?: RequestInit) => fetch(base + path, { redirect: 'manual', ...init });

  it('redirects /_server/admin/ui and /_synapse/admin/ui to the same path with a slash, below which the page finds its files', async () => {
    for (const path of ['/_server/admin/ui', '/_synapse/admin/ui']) {
      const { status, headers } = await get(path);
      assert.deepEqual([status, headers.get('location')], [302, 'ui/']);
      const page = await get(`${path}/`);
      assert.equal(page.status, 200);
      assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
      assert.match(await page.text(), /<script type="module" src="console\.js">/);
    }
  });

  it('serves a script and a style sheet that name no other host', async () => {
    const [script, style] = await Promise.all(
      ['console.js', 'console.css'].map((name) => get(`/_server/admin/ui/${name}`)),
    );
    assert.equal(script?.headers.get('content-type'), 'text/javascript; charset=utf-8');
    assert.equal(style?.headers.get('content-type'), 'text/css; charset=utf-8');
    const texts = `${await script?.text()}${await style?.text()}`;
    const hosts = [...texts.matchAll(/https?:\/\/[^"'`/ )]+/g)].map(([host]) => host);
    assert.deepEqual(new Set(hosts), new Set(['http://www.w3.org']), 'names of XML namespaces');
  });

  it('forbids inline scripts and styles, other hosts, frames and referrers by response headers', async () => {
    const { headers } = await get('/_synapse/admin/ui/');
    const policy = headers.get('content-security-policy') ?? '';
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; /);
    assert.match(policy, /frame-ancestors 'none'$/);
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
    assert.deepEqual(
      ['x-frame-options', 'x-content-type-options', 'referrer-policy', 'cache-control'].map((name) =>
        headers.get(name),
      ),
      ['DENY', 'nosniff', 'no-referrer', 'no-cache'],
    );
  });

  it('responds 304 without a body when If-None-Match contains the ETag of the file', async () => {
    const { headers } = await get('/_server/admin/ui/console.js');
    const known = { 'if-none-match': headers.get('etag') ?? '' };
    const again = await get('/_server/admin/ui/console.js', { headers: known });
    assert.deepEqual([again.status, await again.text()], [304, '']);
    assert.equal((await get('/_server/admin/ui/', { headers: known })).status, 200);
  });

  it('responds 400 or 404 to paths that leave the folder of the bundle, however they are encoded', async () => {
    const raw = async (path: string) => {
      const socket = connect(Number(new URL(base).port), '127.0.0.1');
      socket.end(`GET /_synapse/admin/ui/${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      return text(socket);
    };
    const up = ['..', '%2e%2e', '..%2f..', '..%5c', '....//', '%252e%252e'];
    const paths = up.flatMap((step) => [`${step}/bundle.ts`, `${step}/${step}/${step}/package.json`]);
    for (const path of [...paths, 'main.tsx', 'nothing.js', '__proto__', '%00']) {
      assert.match(await raw(path), /^HTTP\/1\.1 40[04] /, path);
    }
  });
});

describe('admin_console', () => {
  it('serves the console by default, and responds 404 when it is disabled [option: admin_console.enabled]', async () => {
    for (const enabled of [true, false]) {
      const server = await startTestServer({
        database: 'sqlite',
        config: { console: { admin_console: { enabled } } },
      });
      const statusOf = async (path: string) => (await fetch(server.baseUrl + path)).status;
      assert.equal(await statusOf('/_synapse/admin/ui/'), enabled ? 200 : 404);
      assert.equal(await statusOf('/_server/admin/ui/console.js'), enabled ? 200 : 404);
      await server.stop();
    }
  });
});
