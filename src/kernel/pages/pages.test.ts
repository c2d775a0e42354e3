import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { Type } from 'typebox';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
import { createKernelServer, logLines } from '../../../test/support/servers/kernel-server.ts';
import { forbidden, limitExceeded } from '../../protocol/index.ts';
import { type Reply, type Route, route } from '../http/index.ts';
import { Templates } from '../templates/index.ts';
import { Pages, pageStaticFiles, pageTemplates, staticFiles } from './index.ts';

const folder = mkdtempSync(join(tmpdir(), 'hearth-pages-'));
const templates = join(folder, 'templates');
const files = join(folder, 'files');
const secret = join(folder, 'secret');
for (const path of [templates, files, join(files, 'img'), secret]) mkdirSync(path);
writeFileSync(
  join(templates, 'hello.html'),
  '{% extends "_base.html" %}{% block body %}<p>{{ name }}</p>{% endblock %}',
);
writeFileSync(join(templates, 'broken.html'), '{{ nothing.at.all() }}');
writeFileSync(join(files, 'a b.css'), 'body {}');
writeFileSync(join(files, 'img', 'logo.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
writeFileSync(join(secret, 'key.txt'), 'SECRET');

const pages = new Pages(new Templates({ folders: [templates, pageTemplates] }));

const page = (path: string, handler: Route['handler']): Route =>
  route({ method: 'GET', path: `/_proto/client/${path}`, auth: 'none', errors: 'page' }, handler);

const routes: Route[] = [
  route(
    {
      method: 'GET',
      path: '/_proto/client/hello',
      auth: 'none',
      errors: 'page',
      query: Type.Object({ name: Type.String() }),
    },
    ({ query }) => pages.page('hello.html', { name: query.name }),
  ),
  page('policy', () =>
    pages.page(
      'hello.html',
      {},
      { status: 201, headers: { 'Set-Cookie': ['a=1', 'b=2'] }, policy: { 'script-src': "'nonce-abc'" } },
    ),
  ),
  page('broken', () => pages.page('broken.html', {})),
  page('missing', () => pages.page('missing.html', {})),
  page('forbidden', () => {
    throw forbidden('<b>You</b> may not see this');
  }),
  page('later', () => {
    throw limitExceeded(1500);
  }),
  staticFiles('/_proto/static/*', files),
  staticFiles('/_proto/client/built-in/*', pageStaticFiles),
];

/** Serves the routes above while the tests run. */
function serve(errorPages: Pages) {
  let base = '';
  const server = createKernelServer({ routes, errorPage: errorPages.errorPage });
  before(async () => {
    base = (await server.start())[0]!;
  });
  after(() => server.stop(100));
  return {
    get: async (path: string, init: RequestInit = {}) => {
      const response = await fetch(base + path, init);
      return { status: response.status, headers: response.headers, body: await response.text() };
    },
    /** Sends a path unchanged; fetch would normalize it. */
    getRaw: (path: string) => {
      const socket = connect(Number(new URL(base).port), '127.0.0.1');
      socket.end(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      return text(socket);
    },
  };
}

after(() => rmSync(folder, { recursive: true, force: true }));

describe('Pages.page', () => {
  const { get } = serve(pages);

  it("renders an operator's template in the built-in layout, and escapes the values", async () => {
    const { status, body, headers } = await get(
      `/_matrix/client/hello?name=${encodeURIComponent('<script>"x')}`,
    );
    assert.equal(status, 200);
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    assert.match(body, /^<!doctype html>.*<p>&lt;script&gt;&quot;x<\/p>/s);
  });

  it('sets headers against scripts, frames, content sniffing, referrers and caches', async () => {
    const { headers } = await get('/_matrix/client/hello?name=a');
    assert.equal(
      headers.get('content-security-policy'),
      "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    assert.equal(headers.get('x-frame-options'), 'DENY');
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.equal(headers.get('referrer-policy'), 'no-referrer');
    assert.equal(headers.get('cache-control'), 'no-store');
  });

  it('sends a page with the status, headers and policy directives that its handler sets', async () => {
    const { status, headers } = await get('/_matrix/client/policy');
    assert.equal(status, 201);
    assert.deepEqual(headers.getSetCookie(), ['a=1', 'b=2']);
    assert.match(headers.get('content-security-policy')!, /^default-src 'none'.*; script-src 'nonce-abc'$/);
  });

  it('responds to HEAD with the headers of the page', async () => {
    const { status, body, headers } = await get('/_matrix/client/hello?name=a', { method: 'HEAD' });
    assert.deepEqual([status, body], [200, '']);
    assert.ok(Number(headers.get('content-length')) > 100);
  });
});

describe('Pages.errorPage', () => {
  const { get } = serve(pages);

  it('sends a page with the escaped message of an error, its status and headers', async () => {
    const { status, body, headers } = await get('/_matrix/client/forbidden');
    assert.equal(status, 403);
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(headers.get('x-frame-options'), 'DENY');
    assert.match(body, /&lt;b&gt;You&lt;\/b&gt; may not see this.*M_FORBIDDEN/s);
    assert.equal((await get('/_matrix/client/later')).headers.get('retry-after'), '2');
  });

  it('names a missing query parameter on the error page', async () => {
    const { status, body } = await get('/_matrix/client/hello');
    assert.equal(status, 400);
    assert.match(body, /Query parameter &#39;name&#39; is missing/);
  });

  it('responds 500 with the request id when a template is faulty or missing, and logs the reason', async () => {
    for (const [path, reason] of [
      ['broken', /broken\.html.*nothing/s],
      ['missing', /template not found: missing\.html/],
    ] as const) {
      logLines.length = 0;
      const { status, body } = await get(`/_matrix/client/${path}`, {
        headers: { 'x-request-id': `id-${path}` },
      });
      assert.equal(status, 500);
      assert.match(body, new RegExp(`^<!doctype html>.*Internal server error \\(request id-${path}\\)`, 's'));
      assert.doesNotMatch(body, /nothing|template/);
      const logged = logLines.map((line) => JSON.parse(line)).find(({ level }) => level === 'error');
      assert.equal(logged.request, `id-${path}`);
      assert.match(logged.err.message, reason);
    }
  });
});

describe('Pages.errorPage with a faulty template', () => {
  const faulty = join(folder, 'faulty');
  mkdirSync(faulty);
  writeFileSync(join(faulty, 'error.html'), '{{ nothing() }}');
  const { get } = serve(new Pages(new Templates({ folders: [faulty, pageTemplates] })));

  it('responds with the JSON error of the same status when the error page cannot be rendered, and logs the failure', async () => {
    logLines.length = 0;
    const { status, body } = await get('/_matrix/client/forbidden');
    assert.equal(status, 403);
    assert.equal(JSON.parse(body).errcode, 'M_FORBIDDEN');
    assert.match(logLines.join(''), /The page of an error could not be rendered/);
  });
});

describe('staticFiles', () => {
  const { get, getRaw } = serve(pages);
  const css = '/_matrix/static/a%20b.css';

  it('sends files with their content type, also from subfolders', async () => {
    const { status, body, headers } = await get(css);
    assert.deepEqual([status, body], [200, 'body {}']);
    assert.equal(headers.get('content-type'), 'text/css; charset=utf-8');
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.equal(headers.get('cache-control'), 'public, max-age=3600');
    const svg = await get('/_proto/static/img/logo.svg');
    assert.equal(svg.headers.get('content-type'), 'image/svg+xml');
    assert.match(svg.headers.get('content-security-policy')!, /^default-src 'none'/);
  });

  it('sends the style sheet of the built-in layout', async () => {
    assert.match((await get('/_matrix/client/built-in/pages.css')).body, /color-scheme/);
  });

  it('responds 304 without a body when If-None-Match contains the current ETag, otherwise 200', async () => {
    const tag = (await get(css)).headers.get('etag')!;
    assert.match(tag, /^W\/"[\w-]{22}"$/);
    for (const known of [tag, tag.slice(2), `"x", ${tag}`, '*']) {
      const { status, body, headers } = await get(css, { headers: { 'if-none-match': known } });
      assert.deepEqual([status, body, headers.get('etag')], [304, '', tag], known);
    }
    for (const known of ['"x"', 'W/"x"', '']) {
      assert.equal((await get(css, { headers: { 'if-none-match': known } })).status, 200, known);
    }
    assert.notEqual((await get('/_matrix/static/img/logo.svg')).headers.get('etag'), tag);
  });

  it('reads the folder again after it could not be read', async () => {
    const later = join(folder, 'later');
    const { handler } = staticFiles('/_proto/static/*', later);
    const request = { params: { '*': 'a.css' }, headers: {} } as unknown as Parameters<typeof handler>[0];
    await assert.rejects(async () => handler(request), { code: 'ENOENT' });
    mkdirSync(later);
    writeFileSync(join(later, 'a.css'), 'body {}');
    assert.equal(String(((await handler(request)) as Reply).body), 'body {}');
  });

  it('responds 404 M_NOT_FOUND or M_UNRECOGNIZED to names that are not files of the folder', async () => {
    for (const path of ['none.css', 'img', 'img/', '', 'a%20b.css/', 'A%20B.css', '__proto__']) {
      const { status, body } = await get(`/_matrix/static/${path}`);
      assert.equal(status, 404, path);
      assert.match(body, /"errcode":"M_(NOT_FOUND|UNRECOGNIZED)"/);
    }
  });

  it('serves no file outside of the folder, however the path is encoded', async () => {
    const climb = [
      '..',
      '%2e%2e',
      '.%2e',
      '..%5c',
      '..\\',
      '....//',
      '%252e%252e',
      '..%c0%af',
      '..;',
      'img/..',
    ];
    for (const up of climb) {
      for (const rest of [
        `${up}/secret/key.txt`,
        `img/${up}/${up}/secret/key.txt`,
        `${up}%2fsecret%2fkey.txt`,
      ]) {
        assert.doesNotMatch(await getRaw(`/_matrix/static/${rest}`), /SECRET/, rest);
      }
    }
    assert.doesNotMatch(await getRaw(`/_matrix/static/${join(secret, 'key.txt')}`), /SECRET/);
    const part = fc.constantFrom('..', '.', '/', '%2e', '%2f', '\\', '%00', 'img', 'secret', 'key.txt', '%');
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 12 }), async (parts) => {
        const answer = await getRaw(`/_matrix/static/${parts.join('')}`);
        assert.match(answer, /^HTTP\/1.1 (404|400) /);
      }),
      { numRuns: runs(200) },
    );
  });
});
