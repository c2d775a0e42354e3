import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { createLogger, readJaegerConfig, silentLogger } from '../observability/index.ts';
import { systemRandomness } from '../randomness.ts';
import { SpanExporter } from './exporter.ts';
import { samplerOf } from './sampler.ts';
import type { Span } from './span.ts';
import { fromJaeger, fromTraceparent, toJaeger, toTraceparent } from './trace-context.ts';
import { Tracer } from './tracer.ts';
import { Tracing } from './tracing.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';

describe('trace contexts', () => {
  it('writes and reads trace contexts in the formats of W3C and Jaeger', () => {
    const context = { traceId, spanId, sampled: true };
    assert.equal(toTraceparent(context), `00-${traceId}-${spanId}-01`);
    assert.equal(toJaeger({ ...context, sampled: false }), `${traceId}:${spanId}:0:0`);
    assert.deepEqual(fromTraceparent(toTraceparent(context)), context);
    assert.deepEqual(fromJaeger(toJaeger(context)), context);
    assert.deepEqual(fromJaeger('3577b34da6a3ce92%3Af067aa0ba902b7%3A0%3A3'), {
      traceId: '00000000000000003577b34da6a3ce92',
      spanId,
      sampled: true,
    });
  });

  it('reads no trace context from an invalid traceparent or uber-trace-id', () => {
    const zeros = '0'.repeat(32);
    for (const text of [
      '',
      `00-${traceId}-${spanId}`,
      `00-${zeros}-${spanId}-01`,
      `ff-${traceId}-${spanId}-01`,
    ])
      assert.equal(fromTraceparent(text), undefined, text);
    for (const text of ['', 'a:b:c', `${zeros}:1:0:1`, `${'a'.repeat(33)}:1:0:1`, 'x:1:0:1'])
      assert.equal(fromJaeger(text), undefined, text);
  });
});

describe('readJaegerConfig', () => {
  it('returns the defaults of the Jaeger client for an empty jaeger_config', () => {
    const { settings, problems } = readJaegerConfig({});
    assert.deepEqual(problems, []);
    assert.deepEqual(settings.sampler, { type: 'probabilistic', probability: 0.001 });
    assert.deepEqual(
      [settings.isEnabled, settings.host, settings.header],
      [true, 'localhost', 'uber-trace-id'],
    );
  });

  it('reads the sampler, the agent, tags and the settings of the reporter', () => {
    const { settings, problems } = readJaegerConfig({
      sampler: { type: 'ratelimiting', param: 2.5 },
      logging: true,
      local_agent: { reporting_host: 'jaeger.example.org' },
      service_name: 'chat',
      tags: { zone: 1 },
      reporter_flush_interval: 3,
      max_tag_value_length: 10,
    });
    assert.deepEqual(problems, []);
    assert.deepEqual(
      [settings.sampler, settings.logging, settings.host, settings.serviceName, settings.tags],
      [{ type: 'ratelimiting', perSecond: 2.5 }, true, 'jaeger.example.org', 'chat', { zone: '1' }],
    );
    assert.deepEqual([settings.flushInterval, settings.maxValueLength], [3_000, 10]);
    assert.deepEqual(readJaegerConfig({ sampler: { type: 'const', param: 0 } }).settings.sampler, {
      type: 'const',
      records: false,
    });
    assert.equal(readJaegerConfig({ enabled: false }).settings.isEnabled, false);
  });

  it('reports invalid values as errors, and members without effect as notices', () => {
    const problemsOf = (config: Record<string, unknown>) =>
      readJaegerConfig(config).problems.map(({ path, isError }) => [path, isError]);
    assert.deepEqual(problemsOf({ sampler: { type: 'some' }, logging: true }), [['sampler.type', true]]);
    assert.deepEqual(problemsOf({ sampler: { type: 'probabilistic', param: 2 } }), [['sampler.param', true]]);
    assert.deepEqual(problemsOf({ sampler: 'const', tags: [], reporter_queue_size: '5' }), [
      ['sampler', true],
      ['tags', true],
      ['reporter_queue_size', true],
    ]);
    assert.deepEqual(problemsOf({ local_agent: { reporting_port: 6831 }, propagation: 'b3' }), [
      ['propagation', false],
      ['local_agent.reporting_port', false],
    ]);
  });
});

describe('samplerOf', () => {
  it('records all traces, none, a fraction of them, or a number per second', () => {
    const clock = manualClock();
    const count = (settings: Parameters<typeof samplerOf>[0]) => {
      const sampler = samplerOf(settings, clock, systemRandomness);
      return () => Array.from({ length: 100 }, sampler).filter(Boolean).length;
    };
    assert.equal(count({ type: 'const', records: true })(), 100);
    assert.equal(count({ type: 'const', records: false })(), 0);
    assert.equal(count({ type: 'probabilistic', probability: 0 })(), 0);
    assert.equal(count({ type: 'probabilistic', probability: 1 })(), 100);
    const limited = count({ type: 'ratelimiting', perSecond: 3 });
    assert.deepEqual([limited(), limited()], [3, 0]);
    clock.advance(1_000);
    assert.equal(limited(), 3);
    assert.equal(count({ type: 'ratelimiting', perSecond: 0 })(), 0);
  });
});

describe('Tracer', () => {
  const clock = manualClock();
  const open = (records = true) => {
    const ended: Span[] = [];
    const sampler = () => records;
    const tracer = new Tracer({
      sampler,
      clock,
      randomness: systemRandomness,
      ended: (spans) => void ended.push(...spans),
    });
    return { tracer, ended };
  };

  it('makes a span the child of the span within which it begins, across awaits', async () => {
    const { tracer, ended } = open();
    await tracer.run({ name: 'outer', kind: 'server' }, async (outer) => {
      await turn();
      await tracer.run({ name: 'inner', kind: 'internal' }, async (inner) => {
        await turn();
        clock.advance(5);
        assert.equal(tracer.current, inner);
        assert.equal(inner.parentSpanId, outer.spanId);
      });
      assert.equal(tracer.current, outer);
      assert.deepEqual(ended, [], 'spans wait for the end of the first one');
    });
    assert.deepEqual(
      ended.map(({ name, duration, trace }) => [name, duration, trace === ended[0]!.trace]),
      [
        ['inner', 5, true],
        ['outer', 5, true],
      ],
    );
    assert.equal(tracer.current, undefined);
  });

  it('marks the span of failed work as failed, and rethrows the error', async () => {
    const { tracer, ended } = open();
    const failing = tracer.run({ name: 'a', kind: 'internal' }, () => Promise.reject(new Error('no')));
    await assert.rejects(failing, /no/);
    assert.equal(ended[0]!.isFailed, true);
  });

  it('begins a linked trace for work that begins after the end of the request that caused it', async () => {
    const { tracer, ended } = open();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let later: Promise<void> | undefined;
    await tracer.run({ name: 'request', kind: 'server' }, async () => {
      later = released.then(() => tracer.run({ name: 'queue', kind: 'client' }, () => {}));
    });
    release();
    await later;
    const [request, queue] = ended as [Span, Span];
    assert.notEqual(queue.trace.traceId, request.trace.traceId);
    assert.equal(queue.parentSpanId, undefined);
    assert.equal(queue.cause?.spanId, request.spanId);
  });

  it('records no span of an unsampled trace, and all spans of one that becomes sampled before its end', async () => {
    const { tracer, ended } = open(false);
    await tracer.run({ name: 'a', kind: 'server' }, () => {});
    assert.deepEqual(ended, []);
    await tracer.run({ name: 'b', kind: 'server' }, async (span) => {
      await tracer.run({ name: 'c', kind: 'internal' }, () => {});
      span.trace.sampled = true;
    });
    assert.deepEqual(
      ended.map(({ name }) => name),
      ['c', 'b'],
    );
  });
});

describe('Tracing', () => {
  it('continues the trace of a request from a server in the whitelist, and not from other servers', async () => {
    for (const [origin, isContinued] of [
      ['b.test', true],
      ['c.test', false],
    ] as const) {
      const ended: Span[] = [];
      const tracer = new Tracer({
        sampler: () => true,
        clock: manualClock(),
        randomness: systemRandomness,
        ended: (spans) => void ended.push(...spans),
      });
      const options = { whitelist: ['b\\.'], forcedUsers: [], jaegerHeader: 'uber-trace-id' };
      const tracing = new Tracing(tracer, options);
      const exchange = {
        method: 'GET',
        url: '/x?access_token=secret',
        id: 'GET-1',
        headers: { 'uber-trace-id': `${traceId}:${spanId}:0:1` },
        response: { statusCode: 200 },
        origin: undefined as string | undefined,
      };
      const route = { contract: { method: 'GET', path: '/x', auth: 'server' }, handler: () => ({}) } as const;
      await tracing.serve(route, exchange as never, async () => {
        exchange.origin = origin;
        tracing.authenticated(exchange as never);
      });
      const [span] = ended as [Span];
      assert.equal(span.trace.traceId === traceId && span.parentSpanId === spanId, isContinued, origin);
      assert.doesNotMatch(JSON.stringify(span.attributes), /secret/);
    }
  });
});

describe('SpanExporter', () => {
  it('sends batches one at a time, drops spans that exceed its queue, and survives failures of the collector', async () => {
    const clock = manualClock();
    const bodies: string[] = [];
    let status = 500;
    const exporter = new SpanExporter({
      endpoint: new URL('http://127.0.0.1:4318/v1/traces'),
      resource: { version: '1', attributes: { 'service.name': 'test' }, maxValueLength: 4 },
      settings: { batchSize: 2, queueSize: 4, flushInterval: 1_000, logging: false },
      http: {
        async fetch(url, { body }) {
          bodies.push(String(body));
          await turn();
          return { status, headers: {}, body: Buffer.alloc(0), url };
        },
      },
      clock,
      log: silentLogger,
    });
    const tracer = new Tracer({
      sampler: () => true,
      clock,
      randomness: systemRandomness,
      ended: (spans) => exporter.add(spans),
    });
    const record = () =>
      tracer.run(
        { name: 'a', kind: 'client', attributes: { text: 'longer', count: 2, part: 0.5, yes: true } },
        () => {},
      );
    await record();
    assert.equal(bodies.length, 0, 'waits for more spans');
    clock.advance(1_000);
    assert.equal(bodies.length, 1);
    await turn();
    await turn();
    for (let count = 0; count < 10; count += 1) await record();
    status = 200;
    await exporter.close();
    await record();
    const sizes = bodies.map((body) => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans.length);
    assert.deepEqual(sizes.slice(0, 2), [1, 2]);
    assert.ok(sizes.every((size) => size <= 2) && sizes.length <= 4, String(sizes));
    const [first] = JSON.parse(bodies[0]!).resourceSpans;
    assert.deepEqual(first.resource.attributes, [{ key: 'service.name', value: { stringValue: 'test' } }]);
    const [span] = first.scopeSpans[0].spans;
    assert.deepEqual(
      { ...span, traceId: '', spanId: '' },
      {
        traceId: '',
        spanId: '',
        name: 'a',
        kind: 3,
        startTimeUnixNano: '1700000000000000000',
        endTimeUnixNano: '1700000000000000000',
        attributes: [
          { key: 'text', value: { stringValue: 'long' } },
          { key: 'count', value: { intValue: '2' } },
          { key: 'part', value: { doubleValue: 0.5 } },
          { key: 'yes', value: { boolValue: true } },
        ],
        status: {},
      },
    );
  });

  it('aborts the request to a collector that does not answer, when close() is called', async () => {
    const clock = manualClock();
    const warnings: string[] = [];
    const exporter = new SpanExporter({
      endpoint: new URL('http://user:hunter2@127.0.0.1:4318/v1/traces'),
      resource: { version: '1', attributes: {}, maxValueLength: 4 },
      settings: { batchSize: 1, queueSize: 4, flushInterval: 1_000, logging: false },
      http: {
        fetch: (_url, { signal }) =>
          new Promise((_resolve, reject) => {
            signal?.addEventListener('abort', () => reject(new Error('aborted')));
          }),
      },
      clock,
      log: createLogger({ level: 'info', destination: { write: (line) => void warnings.push(line) } }),
    });
    const ended = (spans: readonly Span[]) => exporter.add(spans);
    const tracer = new Tracer({ sampler: () => true, clock, randomness: systemRandomness, ended });
    for (let count = 0; count < 2; count += 1)
      await tracer.run({ name: 'a', kind: 'client', attributes: {} }, () => {});
    const closed = exporter.close();
    clock.advance(3_000);
    await closed;
    assert.match(String(warnings), /The collector does not accept traces/);
    assert.doesNotMatch(String(warnings), /hunter2/);
  });
});
