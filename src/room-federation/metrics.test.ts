import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from '../kernel/observability/index.ts';
import type { StoredEvent } from '../room-engine/stored-event.ts';
import { incomingMetrics } from './metrics.ts';

test('incomingMetrics reports the number and the age of staged events, outcomes and processing times', async () => {
  const metrics = await createMetrics();
  const waiting = { count: 3, oldestAge: 4_500 };
  const recorder = incomingMetrics(metrics, () => waiting);
  const stored = (flags: object) => ({ rejected: false, softFailed: false, ...flags }) as StoredEvent;
  for (const flags of [{}, {}, { rejected: true }, { softFailed: true }]) recorder.placed(stored(flags));
  recorder.refused(4);
  recorder.dropped();
  recorder.recordDuration(30);
  const text = await metrics.render();
  const lines = text.split('\n').filter((line) => line.startsWith('server_federation_incoming_'));
  const has = (line: string) => assert.ok(lines.includes(`server_federation_incoming_${line}`), line);
  has('staged_events 3');
  has('lag_seconds 4.5');
  has('events_total{outcome="accepted"} 2');
  has('events_total{outcome="rejected"} 1');
  has('events_total{outcome="soft_failed"} 1');
  has('events_total{outcome="refused"} 4');
  has('events_total{outcome="given_up"} 1');
  has('processing_seconds_bucket{le="0.1"} 1');
  waiting.count = 0;
  assert.match(await metrics.render(), /staged_events 0\n/);
});
