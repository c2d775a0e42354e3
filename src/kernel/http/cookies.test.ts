import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { createKernelServer } from '../../../test/support/servers/kernel-server.ts';
import { clearCookie, parseCookies, setCookie } from './cookies.ts';
import { Reply, redirect, route } from './index.ts';

const secure = { isSecure: true };
const plain = { isSecure: false };
const nameOf = fc.stringMatching(/^[A-Za-z_][\w-]{0,20}$/);

describe('setCookie', () => {
  it('sets HttpOnly and SameSite, and Secure over TLS', () => {
    assert.equal(setCookie(secure, 'session', 'abc'), 'session=abc; Path=/; HttpOnly; Secure; SameSite=Lax');
    assert.equal(
      setCookie(plain, 'session', 'abc', { path: '/_matrix/client', maxAge: 60, sameSite: 'strict' }),
      'session=abc; Max-Age=60; Path=/_matrix/client; HttpOnly; SameSite=Strict',
    );
  });

  it('uses SameSite=Lax in place of None without TLS, since browsers reject None there', () => {
    assert.match(setCookie(secure, 'a', 'b', { sameSite: 'none' }), /; Secure; SameSite=None$/);
    assert.match(setCookie(plain, 'a', 'b', { sameSite: 'none' }), /; HttpOnly; SameSite=Lax$/);
  });

  it('clearCookie deletes a cookie with an empty value and Max-Age=0', () => {
    assert.equal(clearCookie(plain, 'a', { path: '/x' }), 'a=; Max-Age=0; Path=/x; HttpOnly; SameSite=Lax');
  });

  it('encodes any value into one header, from which parseCookies reads it back', () => {
    fc.assert(
      fc.property(nameOf, fc.string({ unit: 'grapheme' }), (name, value) => {
        const header = setCookie(secure, name, value);
        assert.match(header, /^[\x20-\x7e]*$/);
        assert.equal(header.split('; ').length, 5);
        assert.equal(parseCookies(header.split(';', 1)[0])[name], value);
      }),
    );
  });

  it('throws for names and paths that would break the header or add attributes', () => {
    for (const name of ['a b', 'a;b', 'a=b', 'a\r\nb', ''])
      assert.throws(() => setCookie(plain, name, 'x'), name);
    assert.throws(() => setCookie(plain, 'a', 'x', { path: '/; Domain=example.org' }));
  });
});

describe('parseCookies', () => {
  it('uses the first of several cookies with one name, and decodes values', () => {
    assert.deepEqual(
      { ...parseCookies('a=1; b="q"; a=2; c=%C3%A9; d=%ff; e') },
      { a: '1', b: '"q"', c: 'é', d: '%ff' },
    );
    assert.deepEqual({ ...parseCookies(undefined) }, {});
  });

  it('never throws and never changes Object.prototype, whatever the header contains', () => {
    const piece = fc.oneof(
      fc.constantFrom(';', '=', '; ', '__proto__', 'constructor', '%', '%ff', '"', '\t', ','),
      fc.string({ maxLength: 4 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const cookies = parseCookies(pieces.join(''));
        assert.equal((cookies as object) instanceof Object, false);
        for (const [name, value] of Object.entries(cookies)) {
          assert.ok(!/[;=]/.test(name) && typeof value === 'string');
        }
      }),
      { numRuns: 1000 },
    );
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  });
});

describe('cookies and redirects over HTTP', () => {
  const headers = (request: { readonly isSecure: boolean }) => ({
    'Set-Cookie': [setCookie(request, 'a', '1; x'), setCookie(request, 'b', '2')],
    Vary: 'Cookie',
  });
  const page = (path: string, reply: (request: { isSecure: boolean }) => Reply) =>
    route({ method: 'GET', path: `/_proto/client/${path}`, auth: 'none' }, reply);
  const server = createKernelServer({
    routes: [
      page('text', (request) => new Reply(200, 'text', headers(request))),
      page('empty', (request) => new Reply(204, undefined, headers(request))),
      page('stream', (request) => new Reply(200, Readable.from(['s']), headers(request))),
      page('go', (request) => redirect('/there?name=é ü\r\nSet-Cookie: x=y', 303, headers(request))),
      page('app', () => redirect('element://connect?token=1')),
      route({ method: 'GET', path: '/_proto/client/cookies', auth: 'none' }, ({ cookies }) => ({
        ...cookies,
      })),
    ],
  });
  let base = '';
  before(async () => {
    base = (await server.start())[0]!;
  });
  after(() => server.stop(100));
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`${base}/_matrix/client/${path}`, { redirect: 'manual', ...init });

  it('sends each cookie in a Set-Cookie header of its own, with text, a stream, a redirect or no body', async () => {
    for (const path of ['text', 'empty', 'stream', 'go']) {
      const { headers } = await get(path);
      assert.deepEqual(headers.getSetCookie(), [
        'a=1%3B%20x; Path=/; HttpOnly; SameSite=Lax',
        'b=2; Path=/; HttpOnly; SameSite=Lax',
      ]);
      assert.equal(headers.get('vary'), 'Cookie');
    }
  });

  it('marks cookies Secure when the proxy says that the client uses TLS, and when it does not say what the client uses', async () => {
    const isSecure = async (headers: Record<string, string>) =>
      /; Secure/.test((await get('text', { headers })).headers.getSetCookie()[0]!);
    assert.equal(await isSecure({ 'x-forwarded-for': '203.0.113.1', 'x-forwarded-proto': 'https' }), true);
    assert.equal(
      await isSecure({ 'x-forwarded-for': '203.0.113.1', 'x-forwarded-proto': 'HTTPS, http' }),
      true,
    );
    assert.equal(await isSecure({ 'x-forwarded-for': '203.0.113.1' }), true);
    assert.equal(await isSecure({ 'x-forwarded-for': '203.0.113.1', 'x-forwarded-proto': 'http' }), false);
    assert.equal(await isSecure({}), false);
  });

  it('marks cookies Secure on a listener with TLS', async () => {
    const fixture = (name: string) =>
      fileURLToPath(new URL(`../../../test/fixtures/tls/${name}`, import.meta.url));
    const tls = { certificate: fixture('first.cert.pem'), key: fixture('first.key.pem') };
    const secureServer = createKernelServer({
      routes: [page('text', (request) => new Reply(200, 'text', headers(request)))],
      listeners: [
        {
          name: 'tls',
          bind: { kind: 'tcp', port: 0, addresses: ['127.0.0.1'], tls },
          resources: [{ names: ['client'], compress: false }],
          forwarded: false,
          requestIdHeader: undefined,
        },
      ],
    });
    const [address] = await secureServer.start();
    const sent = httpsRequest(`${address}/_matrix/client/text`, { rejectUnauthorized: false }).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.resume();
    assert.match(response.headers['set-cookie']![0]!, /; HttpOnly; Secure; SameSite=Lax$/);
    await secureServer.stop(100);
  });

  it('reads the cookies of a request', async () => {
    const response = await get('cookies', { headers: { cookie: 'a=1; __proto__=2; b=%7B' } });
    assert.equal(await response.text(), '{"a":"1","__proto__":"2","b":"{"}');
  });

  it('percent-encodes line breaks and non-ASCII characters in the Location of a redirect', async () => {
    const response = await get('go');
    assert.equal(response.status, 303);
    assert.equal(response.headers.get('location'), '/there?name=%C3%A9%20%C3%BC%0D%0ASet-Cookie:%20x=y');
    const app = await get('app');
    assert.deepEqual([app.status, app.headers.get('location')], [302, 'element://connect?token=1']);
  });
});
