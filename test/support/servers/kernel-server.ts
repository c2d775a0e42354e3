import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before } from 'node:test';
import { Type } from 'typebox';
import { systemClock } from '../../../src/kernel/clock.ts';
import {
  type Authenticator,
  createHttpServer,
  type HttpServer,
  type HttpServerOptions,
  healthRoute,
  Reply,
  type Requester,
  type Route,
  route,
} from '../../../src/kernel/http/index.ts';
import { createLogger } from '../../../src/kernel/observability/index.ts';
import { limitExceeded, MatrixError } from '../../../src/protocol/index.ts';

const alice: Requester = {
  userId: '@alice:test',
  deviceId: 'A',
  isGuest: false,
  isAdmin: false,
  appservice: undefined,
  tokenId: 1,
};
const requesters: Record<string, Requester> = {
  'alice-secret': alice,
  'guest-secret': { ...alice, userId: '@guest:test', isGuest: true },
  'admin-secret': { ...alice, userId: '@admin:test', isAdmin: true },
  'bridge-secret': { ...alice, userId: '@bridge:test', deviceId: undefined, appservice: 'bridge' },
};
const authenticator: Authenticator = {
  authenticate(token, { assertedUserId }) {
    const requester = requesters[token];
    if (requester === undefined)
      throw new MatrixError(401, 'M_UNKNOWN_TOKEN', 'Unknown', { soft_logout: false });
    return requester.appservice !== undefined && assertedUserId !== undefined
      ? { ...requester, userId: assertedUserId }
      : requester;
  },
};

/** The allowed values of a parameter: more of them than the number of errors that the validator reports. */
export const listOrders = [...'abcdefghijkl'];

/** One entry for each long poll that has begun. */
export const longPolls: { aborted: boolean }[] = [];
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
        order: Type.Optional(Type.Union(listOrders.map((order) => Type.Literal(order)))),
      }),
    },
    ({ query }) => query,
  ),
  route({ method: 'GET', path: '/_proto/client/v3/broken', auth: 'none' }, () => {
    throw new Error('the database password is swordfish');
  }),
  route({ method: 'GET', path: '/_proto/client/v3/later', auth: 'none' }, () => {
    throw limitExceeded(1_500);
  }),
  route({ method: 'GET', path: '/_proto/client/v3/wait', auth: 'none' }, async ({ signal }) => {
    const state = { aborted: false };
    longPolls.push(state);
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
  route({ method: 'GET', path: '/_proto/client/v3/streamed/:subtype', auth: 'none' }, ({ params }) => {
    const pieces = ['{"text":"', ...Array(50).fill('a'.repeat(1000)), '"}'];
    return new Reply(200, Readable.from(pieces), { 'Content-Type': `application/${params.subtype}` });
  }),
  route({ method: 'PUT', path: '/_proto/federation/v1/send/:txn', auth: 'server' }, ({ origin }) => ({
    origin,
  })),
  route({ method: 'GET', path: '/_proto/key/v2/server', auth: 'none' }, () => ({ keys: true })),
];

/** Lines that the server has logged. */
export const logLines: string[] = [];
const log = createLogger({ level: 'debug', destination: { write: (line) => void logLines.push(line) } });

/** A server with routes of every kind of authentication, body and response. */
export function createKernelServer(overrides: Partial<HttpServerOptions> = {}): HttpServer {
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

export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly raw: string;
  readonly headers: Headers;
}

/** Starts a server before the tests of a file and stops it after them. @returns functions that call it */
export function kernelServerForTests() {
  let base = '';
  const server = createKernelServer();
  before(async () => {
    base = (await server.start())[0]!;
  });
  after(() => server.stop(100));

  async function call(method: string, path: string, init: RequestInit = {}): Promise<Answer> {
    const response = await fetch(base + path, { method, redirect: 'manual', ...init });
    const raw = await response.text();
    const body = raw.startsWith('{') ? (JSON.parse(raw) as Record<string, unknown>) : {};
    return { status: response.status, body, raw, headers: response.headers };
  }

  /** Calls the server and asserts that the response is this error. */
  async function fails(
    status: number,
    errcode: string,
    method: string,
    path: string,
    init: RequestInit = {},
  ): Promise<Answer> {
    const answer = await call(method, path, init);
    assert.deepEqual([answer.status, answer.body['errcode']], [status, errcode], answer.raw);
    assert.equal(answer.headers.get('content-type'), 'application/json');
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    return answer;
  }

  return { base: () => base, call, fails };
}

export const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
