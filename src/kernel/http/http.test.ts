import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { Type } from 'typebox';
import { MatrixError } from '../../protocol/index.ts';
import { systemClock } from '../clock.ts';
import { createLogger } from '../observability/index.ts';
import {
  type Authenticator,
  createHttpServer,
  type HttpServer,
  healthRoute,
  Reply,
  type Requester,
  type Route,
  route,
} from './index.ts';

const alice: Requester = {
  userId: '@alice:test',
  deviceId: 'A',
  isGuest: false,
  isAdmin: false,
  appservice: undefined,
  tokenId: 1,
};
const people: Record<string, Requester> = {
  'alice-secret': alice,
  'guest-secret': { ...alice, userId: '@guest:test', isGuest: true },
  'admin-secret': { ...alice, userId: '@admin:test', isAdmin: true },
  'bridge-secret': { ...alice, userId: '@bridge:test', deviceId: undefined, appservice: 'bridge' },
};
const authenticator: Authenticator = {
  authenticate(token, { assertedUserId }) {
    const found = people[token];
    if (found === undefined) throw new MatrixError(401, 'M_UNKNOWN_TOKEN', 'Unknown', { soft_logout: false });
    return found.appservice !== undefined && assertedUserId !== undefined
      ? { ...found, userId: assertedUserId }
      : found;
  },
};

const waiting: { aborted: boolean }[] = [];
const routes: Route[] = [
  healthRoute,
  route({ method: 'GET', path: '/_proto/client/versions', auth: 'none' }, () => ({ versions: ['v1.1'] })),
  route(
    { method: 'GET', path: ['/_proto/client/r0/who/:user', '/_proto/client/v3/who/:user'], auth: 'guest' },
    ({ params, requester, url, ip }) => ({ user: params.user, me: requester.userId, url, ip }),
  ),
  route({ method: 'GET', path: '/_proto/client/v3/members', auth: 'user' }, () => ({})),
  route({ method: 'GET', path: '/_proto/client/v3/bridges', auth: 'appservice' }, ({ requester }) => ({
    me: requester.userId,
  })),
  route({ method: 'GET', path: '/_proto/client/v3/maybe', auth: 'optional' }, ({ requester }) => ({
    me: requester?.userId ?? null,
  })),
  route(
    { method: 'POST', path: '/_server/admin/v1/purge', auth: 'admin', body: Type.Object({}) },
    () => ({}),
  ),
  route(
    {
      method: 'POST',
      path: '/_proto/client/v3/echo',
      auth: 'none',
      bodyLimit: 10_000,
      body: Type.Object({
        name: Type.String(),
        age: Type.Optional(Type.Integer()),
        more: Type.Optional(Type.Unknown()),
      }),
    },
    ({ body }) => body,
  ),
  route(
    { method: 'PUT', path: '/_proto/client/v3/anything', auth: 'none', body: Type.Object({}) },
    ({ body }) => ({ body }),
  ),
  route(
    {
      method: 'GET',
      path: '/_proto/client/v3/list',
      auth: 'none',
      query: Type.Object({
        dir: Type.Union([Type.Literal('f'), Type.Literal('b')]),
        limit: Type.Integer({ default: 10 }),
        full: Type.Optional(Type.Boolean()),
        server: Type.Optional(Type.Array(Type.String())),
      }),
    },
    ({ query }) => query,
  ),
  route({ method: 'GET', path: '/_proto/client/v3/broken', auth: 'none' }, () => {
    throw new Error('the database password is swordfish');
  }),
  route({ method: 'GET', path: '/_proto/client/v3/wait', auth: 'none' }, async ({ signal }) => {
    const state = { aborted: false };
    waiting.push(state);
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => {
        state.aborted = true;
        resolve();
      });
    });
    return { waited: true };
  }),
  route(
    { method: 'POST', path: '/_proto/media/v3/upload', auth: 'none', bodyMode: 'stream', bodyLimit: 1000 },
    async ({ stream }) => ({ length: (await text(stream!)).length }),
  ),
  route(
    { method: 'GET', path: '/_proto/media/v3/download/:name', auth: 'none' },
    ({ params }) => new Reply(200, Readable.from([params.name, '!']), { 'Content-Type': 'text/plain' }),
  ),
  route({ method: 'GET', path: '/_proto/client/v3/moved', auth: 'none' }, () => {
    return new Reply(302, undefined, { Location: 'https://example.org/' });
  }),
  route({ method: 'GET', path: '/_proto/client/v3/large', auth: 'none' }, () => ({ text: 'a'.repeat(5000) })),
  route({ method: 'PUT', path: '/_proto/federation/v1/send/:txn', auth: 'server' }, ({ origin }) => ({
    origin,
  })),
  route({ method: 'GET', path: '/_proto/key/v2/server', auth: 'none' }, () => ({ keys: true })),
];

const lines: string[] = [];
const log = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });

function startServer(overrides: Partial<Parameters<typeof createHttpServer>[0]> = {}): HttpServer {
  return createHttpServer({
    listeners: [
      {
        name: 'main',
        bind: { kind: 'tcp', port: 0, addresses: ['127.0.0.1'], tls: undefined },
        resources: [
          { names: ['client'], compress: true },
          { names: ['federation'], compress: false },
        ],
        forwarded: true,
        requestIdHeader: 'X-Request-Id',
      },
    ],
    routes,
    authenticator,
    log,
    clock: systemClock,
    ...overrides,
  });
}

let server: HttpServer;
let base = '';

before(async () => {
  server = startServer();
  base = (await server.start())[0]!;
});
after(() => server.stop(100));

async function call(method: string, path: string, init: RequestInit = {}) {
  const response = await fetch(base + path, { method, redirect: 'manual', ...init });
  const raw = await response.text();
  const body = raw.startsWith('{') ? (JSON.parse(raw) as Record<string, unknown>) : {};
  return { status: response.status, body, raw, headers: response.headers };
}

async function fails(status: number, errcode: string, method: string, path: string, init: RequestInit = {}) {
  const answer = await call(method, path, init);
  assert.deepEqual([answer.status, answer.body['errcode']], [status, errcode], answer.raw);
  assert.equal(answer.headers.get('content-type'), 'application/json');
  assert.equal(answer.headers.get('access-control-allow-origin'), '*');
  return answer;
}

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

describe('routing', () => {
  it('serves both spellings', async () => {
    for (const prefix of ['/_matrix', '/_proto']) {
      assert.deepEqual((await call('GET', `${prefix}/client/versions`)).body, { versions: ['v1.1'] });
    }
    assert.equal((await call('POST', '/_synapse/admin/v1/purge', bearer('admin-secret'))).status, 200);
  });

  it('keeps the URL as it was sent and decodes parameters', async () => {
    const url = '/_matrix/client/r0/who/%40b%2Fob%25:test?x=1';
    const { body } = await call('GET', url, bearer('alice-secret'));
    assert.deepEqual(body, { user: '@b/ob%:test', me: '@alice:test', url, ip: '127.0.0.1' });
  });

  it('hands parameters on exactly as they were encoded', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }), async (name) => {
        fc.pre(name.isWellFormed() && name !== '.' && name !== '..');
        const path = `/_matrix/client/v3/who/${encodeURIComponent(name)}`;
        assert.equal((await call('GET', path, bearer('alice-secret'))).body['user'], name);
      }),
      { numRuns: 200 },
    );
    for (const name of ['%25', '%2F', 'a;b', 'a?b#c', '+ +', '//', '%']) {
      const path = `/_matrix/client/v3/who/${encodeURIComponent(name)}`;
      assert.equal((await call('GET', path, bearer('alice-secret'))).body['user'], name);
    }
  });

  it('tells unknown paths from wrong methods', async () => {
    await fails(404, 'M_UNRECOGNIZED', 'GET', '/_matrix/client/v3/nothing');
    await fails(404, 'M_UNRECOGNIZED', 'GET', '/else');
    await fails(405, 'M_UNRECOGNIZED', 'DELETE', '/_matrix/client/versions');
    await fails(405, 'M_UNRECOGNIZED', 'PATCH', '/_matrix/client/v3/who/x');
  });

  it('refuses bad percent encoding', async () => {
    await fails(400, 'M_INVALID_PARAM', 'GET', '/_matrix/client/v3/who/%ff', bearer('alice-secret'));
    await fails(400, 'M_INVALID_PARAM', 'GET', '/_matrix/client/v3/who/%', bearer('alice-secret'));
  });

  it('answers preflights without looking at the route', async () => {
    const answer = await call('OPTIONS', '/_matrix/client/v3/members');
    assert.equal(answer.status, 204);
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    assert.match(answer.headers.get('access-control-allow-methods')!, /PUT/);
    assert.match(answer.headers.get('access-control-allow-headers')!, /Authorization/);
  });

  it('answers HEAD like GET, without the body', async () => {
    const answer = await call('HEAD', '/_matrix/client/versions');
    assert.deepEqual([answer.status, answer.raw], [200, '']);
    assert.equal(answer.headers.get('content-length'), String('{"versions":["v1.1"]}'.length));
  });
});

describe('authentication', () => {
  it('takes the token from the header or the query', async () => {
    const { body } = await call('GET', '/_matrix/client/v3/who/x?access_token=alice-secret');
    assert.equal(body['me'], '@alice:test');
    await fails(401, 'M_MISSING_TOKEN', 'GET', '/_matrix/client/v3/who/x');
    await fails(401, 'M_MISSING_TOKEN', 'GET', '/_matrix/client/v3/who/x', {
      headers: { authorization: 'Basic YTpi' },
    });
    const { body: error } = await fails(
      401,
      'M_UNKNOWN_TOKEN',
      'GET',
      '/_matrix/client/v3/maybe',
      bearer('x'),
    );
    assert.equal(error['soft_logout'], false);
  });

  it('knows guests, administrators and application services', async () => {
    await fails(403, 'M_GUEST_ACCESS_FORBIDDEN', 'GET', '/_matrix/client/v3/members', bearer('guest-secret'));
    assert.equal((await call('GET', '/_matrix/client/v3/who/x', bearer('guest-secret'))).status, 200);
    await fails(403, 'M_FORBIDDEN', 'POST', '/_server/admin/v1/purge', bearer('alice-secret'));
    await fails(403, 'M_FORBIDDEN', 'GET', '/_matrix/client/v3/bridges', bearer('alice-secret'));
    const asserted = await call(
      'GET',
      '/_matrix/client/v3/bridges?user_id=@irc:test',
      bearer('bridge-secret'),
    );
    assert.equal(asserted.body['me'], '@irc:test');
    assert.deepEqual((await call('GET', '/_matrix/client/v3/maybe')).body, { me: null });
  });

  it('lets no server in without a way to check signatures', async () => {
    await fails(401, 'M_UNAUTHORIZED', 'PUT', '/_matrix/federation/v1/send/1', { body: '{}' });
  });
});

describe('bodies', () => {
  const echo = '/_matrix/client/v3/echo';
  const post = (body: string | Uint8Array<ArrayBuffer>, type?: string) => ({
    body,
    headers: type === undefined ? {} : { 'content-type': type },
  });

  it('are JSON whatever their type says', async () => {
    for (const type of ['application/json', 'text/plain', 'no/such; type=', 'nonsense', undefined]) {
      assert.deepEqual((await call('POST', echo, post('{"name":"é"}', type))).body, { name: 'é' });
    }
  });

  it('may be absent where nothing is required', async () => {
    assert.deepEqual((await call('PUT', '/_matrix/client/v3/anything')).body, { body: {} });
    await fails(400, 'M_NOT_JSON', 'POST', echo);
  });

  it('are checked', async () => {
    const missing = await fails(400, 'M_BAD_JSON', 'POST', echo, post('{}'));
    assert.match(String(missing.body['error']), /'name' is missing/);
    await fails(400, 'M_BAD_JSON', 'POST', echo, post('{"name":1}'));
    await fails(400, 'M_BAD_JSON', 'POST', echo, post('{"name":"a","age":1.5}'));
    await fails(400, 'M_BAD_JSON', 'POST', echo, post('[]'));
    await fails(400, 'M_BAD_JSON', 'POST', echo, post('null'));
    await fails(400, 'M_NOT_JSON', 'POST', echo, post('{"name":'));
    await fails(400, 'M_NOT_JSON', 'POST', echo, post(Uint8Array.of(0x22, 0xff, 0x22)));
    await fails(400, 'M_BAD_JSON', 'POST', echo, post('{"name":"\\ud800"}'));
    await fails(400, 'M_BAD_JSON', 'POST', echo, post('{"name":"a","__proto__":{}}'));
    await fails(400, 'M_BAD_JSON', 'POST', echo, post('{"name":"a","more":[{"\\u005f_proto__":1}]}'));
    await fails(
      400,
      'M_BAD_JSON',
      'POST',
      echo,
      post(`{"name":"a","more":${'['.repeat(500)}${']'.repeat(500)}}`),
    );
    await fails(413, 'M_TOO_LARGE', 'POST', echo, post(JSON.stringify({ name: 'a'.repeat(10_000) })));
    const chunked = { body: ReadableStream.from(['{"name":"', 'a'.repeat(10_000), '"}']), duplex: 'half' };
    await fails(413, 'M_TOO_LARGE', 'POST', echo, chunked as RequestInit);
  });

  it('may be a stream, which is bounded', async () => {
    const upload = '/_matrix/media/v3/upload';
    assert.deepEqual((await call('POST', upload, post('x'.repeat(1000)))).body, { length: 1000 });
    await fails(413, 'M_TOO_LARGE', 'POST', upload, post('x'.repeat(1001)));
    const chunked = { body: ReadableStream.from(['x'.repeat(600), 'x'.repeat(600)]), duplex: 'half' };
    await fails(413, 'M_TOO_LARGE', 'POST', upload, chunked as RequestInit);
  });

  it('leave the connection usable when they are refused', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const body = 'x'.repeat(1_000_000);
    const statuses: number[] = [];
    for (const path of ['/_matrix/media/v3/upload', echo, '/_matrix/client/v3/nothing', '/health']) {
      const method = path === '/health' ? 'GET' : 'POST';
      const request = httpRequest(base + path, { agent, method });
      if (method === 'POST') request.write(body.slice(0, 500_000));
      request.end(method === 'POST' ? body.slice(500_000) : undefined);
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      await text(response);
      statuses.push(response.statusCode!);
    }
    assert.deepEqual(statuses, [413, 413, 404, 200]);
    agent.destroy();
  });
});

describe('query parameters', () => {
  it('are converted and have defaults', async () => {
    const { body } = await call('GET', '/_matrix/client/v3/list?dir=f&full=true&server=a&other=1');
    assert.deepEqual(body, { dir: 'f', limit: 10, full: true, server: ['a'], other: '1' });
    const { body: twice } = await call(
      'GET',
      '/_matrix/client/v3/list?dir=b&dir=f&limit=5&server=a&server=b',
    );
    assert.deepEqual(twice, { dir: 'b', limit: 5, server: ['a', 'b'] });
  });

  it('are checked', async () => {
    await fails(400, 'M_MISSING_PARAM', 'GET', '/_matrix/client/v3/list');
    await fails(400, 'M_INVALID_PARAM', 'GET', '/_matrix/client/v3/list?dir=x');
    await fails(400, 'M_INVALID_PARAM', 'GET', '/_matrix/client/v3/list?dir=f&limit=many');
    await fails(400, 'M_INVALID_PARAM', 'GET', '/_matrix/client/v3/list?dir=f&limit=1e3');
    await fails(400, 'M_INVALID_PARAM', 'GET', '/_matrix/client/v3/list?dir=f&full=yes');
  });
});

describe('requests that are not HTTP', () => {
  async function send(bytes: string): Promise<string> {
    const socket = connect(Number(new URL(base).port), '127.0.0.1');
    socket.end(bytes);
    return text(socket);
  }

  it('are told what is wrong with them', async () => {
    assert.match(await send('nonsense\r\n\r\n'), /^HTTP\/1.1 400 .*"errcode":"M_UNKNOWN"/s);
    const long = `GET /_matrix/client/versions?${'a'.repeat(70_000)} HTTP/1.1\r\nHost: x\r\n\r\n`;
    assert.match(await send(long), /^HTTP\/1.1 431 .*"errcode":"M_TOO_LARGE"/s);
  });
});

describe('responses', () => {
  it('may be streams and redirects', async () => {
    const { raw, headers } = await call('GET', '/_matrix/media/v3/download/cat');
    assert.deepEqual([raw, headers.get('content-type')], ['cat!', 'text/plain']);
    const moved = await call('GET', '/_matrix/client/v3/moved');
    assert.deepEqual([moved.status, moved.headers.get('location')], [302, 'https://example.org/']);
  });

  it('are compressed where the listener and the client agree', async () => {
    const { headers, body } = await call('GET', '/_matrix/client/v3/large');
    assert.equal(headers.get('content-encoding'), 'gzip');
    assert.equal(String(body['text']).length, 5000);
    const plain = await call('GET', '/_matrix/client/v3/large', {
      headers: { 'accept-encoding': 'br, gzip;q=0' },
    });
    assert.equal(plain.headers.get('content-encoding'), null);
  });

  it('do not tell what broke, but the log does', async () => {
    lines.length = 0;
    const answer = await fails(500, 'M_UNKNOWN', 'GET', '/_matrix/client/v3/broken', {
      headers: { 'x-request-id': 'abc-1' },
    });
    assert.match(String(answer.body['error']), /abc-1/);
    assert.doesNotMatch(answer.raw, /swordfish/);
    const logged = lines.map((line) => JSON.parse(line)).find(({ level }) => level === 'error');
    assert.equal(logged.request, 'abc-1');
    assert.match(logged.err.stack, /swordfish/);
  });
});

describe('the log', () => {
  it('has a line for every request, without tokens', async () => {
    lines.length = 0;
    await call('GET', '/_matrix/client/v3/who/x?access_token=alice-secret&y=1', {
      headers: { 'x-forwarded-for': '203.0.113.7, 10.0.0.1' },
    });
    await call('GET', '/_matrix/client/v3/who/x?access%5Ftoken=alice-secret', bearer('admin-secret'));
    await call('GET', '/_matrix/client/v3/nothing?access_token=alice-secret');
    await delay(5);
    const entries = lines.map((line) => JSON.parse(line));
    assert.equal(entries.length, 3);
    assert.equal(entries[0].url, '/_matrix/client/v3/who/x?access_token=<redacted>&y=1');
    assert.deepEqual(
      [entries[0].status, entries[0].user, entries[0].ip],
      [200, '@alice:test', '203.0.113.7'],
    );
    assert.doesNotMatch(lines.join(), /secret/);
  });
});

describe('long polls', () => {
  it('end when the client goes away', async () => {
    const seen = waiting.length;
    const request = httpRequest(`${base}/_matrix/client/v3/wait`).end();
    request.on('error', () => {});
    while (waiting.length === seen) await delay(5);
    request.destroy();
    while (!waiting[seen]!.aborted) await delay(5);
  });

  it('are answered when the server stops, and no connection is left', { timeout: 5000 }, async () => {
    const other = startServer();
    const [address] = await other.start();
    const seen = waiting.length;
    const answer = fetch(`${address}/_matrix/client/v3/wait`);
    const idle = connect(Number(new URL(address!).port), '127.0.0.1');
    idle.on('error', () => {});
    while (waiting.length === seen) await delay(5);
    await other.stop(60_000);
    assert.deepEqual(await (await answer).json(), { waited: true });
    idle.destroy();
    await assert.rejects(fetch(`${address}/health`));
  });
});
