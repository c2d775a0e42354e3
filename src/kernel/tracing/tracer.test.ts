import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { systemRandomness } from '../randomness.ts';
import type { Span } from './span.ts';
import { Tracer } from './tracer.ts';

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
      await nextTurn();
      await tracer.run({ name: 'inner', kind: 'internal' }, async (inner) => {
        await nextTurn();
        clock.advance(5);
        assert.equal(tracer.current, inner);
        assert.equal(inner.parentSpanId, outer.spanId);
      });
      assert.equal(tracer.current, outer);
      assert.deepEqual(ended, [], 'spans wait for the end of the outer span');
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

  it('records no span of an unsampled trace, and all spans of a trace that becomes sampled before its end', async () => {
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
