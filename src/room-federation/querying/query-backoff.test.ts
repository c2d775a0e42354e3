import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { QueryBackoff } from './query-backoff.ts';

const room = '!r:a.example';
const [a, b] = ['a.example', 'b.example'] as const;

test('QueryBackoff doubles the backoff of a server in a room at each failure, up to ten minutes, and ends it at a success', () => {
  const clock = manualClock();
  const backoff = new QueryBackoff(clock, plainCaches(clock));
  const pauses: number[] = [];
  for (let times = 0; times < 9; times++) {
    backoff.recordFailure(room, a);
    const until = backoff.backoffEnd(room, a) ?? 0;
    pauses.push((until - clock.now()) / 1_000);
    assert.equal(backoff.eventsWaitUntil(room, a), until);
    clock.advance(until - clock.now());
    assert.equal(backoff.backoffEnd(room, a), undefined);
  }
  assert.deepEqual(pauses, [10, 20, 40, 80, 160, 320, 600, 600, 600]);
  backoff.recordFailure(room, a);
  assert.equal(backoff.backoffEnd('!other:a.example', a), undefined);
  assert.equal(backoff.backoffEnd(room, b), undefined);
  backoff.recordSuccess(room, a);
  assert.equal(backoff.backoffEnd(room, a), undefined);
});

test('QueryBackoff delays events of a server whose last event took long, but allows requests to that server', () => {
  const clock = manualClock();
  const backoff = new QueryBackoff(clock, plainCaches(clock));
  backoff.recordDuration(room, a, 1_999);
  assert.equal(backoff.eventsWaitUntil(room, a), undefined);
  backoff.recordDuration(room, a, 30_000);
  backoff.recordSuccess(room, a);
  assert.equal(backoff.eventsWaitUntil(room, a), clock.now() + 30_000);
  assert.equal(backoff.backoffEnd(room, a), undefined);
  clock.advance(30_000);
  assert.equal(backoff.eventsWaitUntil(room, a), undefined);
});
