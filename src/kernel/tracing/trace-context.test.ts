import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fromJaeger, fromTraceparent, toJaeger, toTraceparent } from './trace-context.ts';

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
