import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { systemRandomness } from '../randomness.ts';
import type { Span } from './span.ts';
import { Tracer } from './tracer.ts';
import { Tracing } from './tracing.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';

describe('Tracing', () => {
  it('continues the trace of a request from a server in the whitelist, and not from other servers, and stores no access token in the span', async () => {
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
