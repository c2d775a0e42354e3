import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { createLogger, silentLogger } from '../observability/index.ts';
import { systemRandomness } from '../randomness.ts';
import { SpanExporter } from './exporter.ts';
import type { Span } from './span.ts';
import { Tracer } from './tracer.ts';

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
          await nextTurn();
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
    await nextTurn();
    await nextTurn();
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

  it('aborts a request that the collector has not answered 3 seconds after close(), and logs a warning without the password in the URL', async () => {
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
    assert.match(String(warnings), /Traces could not be sent to the collector/);
    assert.doesNotMatch(String(warnings), /hunter2/);
  });
});
