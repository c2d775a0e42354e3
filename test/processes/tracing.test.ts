import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import type { FederatedServer } from '../support/other-servers/several-servers.ts';

/** URLs of all modules that were loaded after this line; the server is imported later for this reason. */
const loaded: string[] = [];
registerHooks({
  load(url, context, next) {
    loaded.push(url);
    return next(url, context);
  },
});
const { selectedDatabases } = await import('../support/databases/databases.ts');
const { SeveralServers } = await import('../support/other-servers/several-servers.ts');
const { serveOnLoopback } = await import('../support/network/loopback.ts');
const { eventually } = await import('../clients/eventually.ts');

interface CollectedSpan {
  readonly resource: Readonly<Record<string, unknown>>;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** `SPAN_KIND_CONSUMER` of the OpenTelemetry protocol. */
const consumerKind = 5;

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

const valuesOf = (attributes: readonly Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

/** Returns the spans in a request to a collector. */
function spansIn(body: string): CollectedSpan[] {
  return JSON.parse(body).resourceSpans.flatMap(
    ({
      resource,
      scopeSpans,
    }: {
      resource: { attributes: Attribute[] };
      scopeSpans: { spans: never[] }[];
    }) => {
      const resourceAttributes = valuesOf(resource.attributes);
      return scopeSpans.flatMap(({ spans }) =>
        spans.map((span: { attributes: Attribute[] }) => ({
          ...span,
          resource: resourceAttributes,
          attributes: valuesOf(span.attributes),
        })),
      );
    },
  );
}

/** Files that only servers with the corresponding options load. */
const optional = /\/src\/kernel\/(tracing|error-reports)\/|\/composition\/manhole\/|node_modules\/ssh2\//;

const databases = selectedDatabases(import.meta.url);
const [firstDatabase] = databases;

/** `jaeger_config` of the second server. */
const jaegerConfigOfB = {
  sampler: { type: 'const', param: 1 },
  service_name: 'chat',
  tags: { zone: 'east' },
  reporter_flush_interval: 0,
};

for (const database of databases) {
  describe(`traces of servers on ${database}`, () => {
    const spans: CollectedSpan[] = [];
    let collector: Awaited<ReturnType<typeof serveOnLoopback>>;
    let several: InstanceType<typeof SeveralServers>;
    let a: FederatedServer;
    let b: FederatedServer;
    let loadedWithoutTraces: readonly string[];

    const tracing = (whitelist: readonly string[], more: object = {}) => ({
      config: {
        observability: {
          server_context: 'trial',
          opentracing: {
            enabled: true,
            homeserver_whitelist: whitelist,
            otlp_endpoint: `http://127.0.0.1:${collector.port}/v1/traces`,
            force_tracing_for_users: ['@anna:a.test'],
            jaeger_config: { sampler: { type: 'const', param: 0 }, reporter_flush_interval: 0 },
            ...more,
          },
        },
      },
    });
    before(async () => {
      collector = await serveOnLoopback(async (request, response) => {
        assert.equal(request.url, '/v1/traces');
        spans.push(...spansIn(await text(request)));
        response.end('{}');
      });
      several = new SeveralServers(database);
      // When the tests run on a second database, this process has loaded the code for the first one already.
      if (database === firstDatabase) await several.homeserver('plain.test');
      const loadedBefore = loaded.filter((url) => optional.test(url));
      a = await several.homeserver('a.test', tracing(['b\\.test']));
      loadedWithoutTraces = database === firstDatabase ? loadedBefore : [];
      b = await several.homeserver('b.test', tracing(['a\\.test'], { jaeger_config: jaegerConfigOfB }));
    });
    after(async () => {
      await several.stop();
      await collector.close();
    });

    const spansNamed = (name: string, service = 'a.test') =>
      spans.filter((span) => span.resource['service.name'] === service && span.name === name);
    const spanOf = (name: string, service?: string) =>
      eventually(`the span ${name}`, () => spansNamed(name, service)[0]);

    it('loads the code of traces only on servers with opentracing.enabled', () => {
      assert.deepEqual(loadedWithoutTraces, []);
      assert.ok(loaded.some((url) => url.includes('/src/kernel/tracing/')));
    });

    it('records all traces of the users in force_tracing_for_users, and continues these traces only on servers of the whitelist [option: opentracing.enabled, opentracing.homeserver_whitelist, opentracing.force_tracing_for_users, opentracing.otlp_endpoint]', async () => {
      const anna = await a.registerClient('anna');
      const bob = await a.registerClient('bob');
      const peer = await several.scripted('c.test');
      const profile = (user: string) => `/_matrix/client/v3/profile/${encodeURIComponent(user)}`;
      await bob.request('GET', profile('@dora:b.test'), undefined);
      await anna.request('GET', profile('@carl:b.test'), undefined);
      await anna.request('GET', profile('@carl:c.test'), undefined);
      const request = await spanOf('GET /_proto/client/v3/profile/:userId');
      assert.equal(request.attributes['user.id'], anna.id);
      assert.equal(request.attributes['http.response.status_code'], '404');
      const sent = await spanOf('GET /_proto/federation/v1/query');
      assert.deepEqual([sent.traceId, sent.parentSpanId], [request.traceId, request.spanId]);
      assert.equal(sent.attributes['server.address'], 'b.test');
      const received = await spanOf('GET /_proto/federation/v1/query/profile', 'chat');
      assert.deepEqual([received.traceId, received.parentSpanId], [request.traceId, sent.spanId]);
      assert.equal(received.attributes['matrix.origin'], 'a.test');
      await eventually('both requests of Anna', () => spansNamed(request.name).length === 2);
      const spansOfA = spans.filter(({ resource }) => resource['service.name'] === 'a.test');
      assert.equal(new Set(spansOfA.map(({ traceId }) => traceId)).size, 2, 'nothing of Bob is recorded');
      const [requestToC] = peer.receivedRequests.filter(({ path }) => path.includes('/query/profile'));
      const { traceparent, 'uber-trace-id': jaeger } = requestToC!.raw.headers;
      assert.deepEqual([traceparent, jaeger], [undefined, undefined]);
      const answer = await peer.request(
        'a.test',
        'GET',
        '/_matrix/federation/v1/query/profile?user_id=%40anna%3Aa.test',
      );
      assert.equal(answer.status, 200);
    });

    it('records a job in the trace of the request that scheduled it', async () => {
      const auth = {
        type: 'm.login.password',
        identifier: { type: 'm.id.user', user: 'anna' },
        password: 'correct horse',
      };
      const login = await a.api('POST', '/_matrix/client/v3/login', { body: auth });
      const token = String(login.body['access_token']);
      const path = '/_matrix/client/v3/account/deactivate';
      const { status } = await a.api('POST', path, { token, body: { auth } });
      assert.equal(status, 200);
      const request = await spanOf('POST /_proto/client/v3/account/deactivate');
      const job = await eventually('the span of a job', () =>
        spans.find(({ name, traceId }) => name.startsWith('job ') && traceId === request.traceId),
      );
      assert.equal(job.kind, consumerKind);
    });

    it('samples traces and names the service as jaeger_config says, and adds the context of the server [option: opentracing.jaeger_config, server_context]', async () => {
      assert.equal((await b.api('GET', '/_matrix/client/versions')).status, 200);
      const span = await spanOf('GET /_proto/client/versions', 'chat');
      assert.equal(span.resource['server_context'], 'trial');
      assert.equal(span.resource['zone'], 'east');
    });
  });
}
