import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { sectionDefaults } from '../../../test/support/inputs/section-defaults.ts';
import { rateLimitsSection, ServerLimiter } from './index.ts';

type Limit = ConstructorParameters<typeof ServerLimiter>[0];

/** Lets pending promises continue. */
const turn = () => new Promise(setImmediate);

function open(limit: Partial<Limit>) {
  const clock = manualClock();
  const defaults = sectionDefaults(rateLimitsSection).rc_federation;
  const limiter = new ServerLimiter({ ...defaults, ...limit }, clock);
  const admitted: string[] = [];
  const releases = new Map<string, () => void>();
  const ask = (name: string, server = 'a.example') =>
    limiter.admit(server).then((release) => {
      admitted.push(name);
      releases.set(name, release);
    });
  return { clock, limiter, admitted, releases, ask };
}

describe('ServerLimiter', () => {
  it('delays requests beyond sleep_limit within a window [option: rc_federation.window_size, rc_federation.sleep_limit, rc_federation.sleep_delay]', async () => {
    const { clock, admitted, ask } = open({
      window_size: 700,
      sleep_limit: 2,
      sleep_delay: 300,
      concurrent: 9,
    });
    for (const name of ['1', '2', '3']) void ask(name);
    void ask('other', 'b.example');
    await turn();
    assert.deepEqual(admitted, ['1', '2', 'other']);
    clock.advance(299);
    await turn();
    assert.equal(admitted.length, 3);
    clock.advance(1);
    await turn();
    assert.equal(admitted.at(-1), '3');
    clock.advance(400);
    void ask('4');
    await turn();
    assert.equal(admitted.at(-1), '4');
  });

  it('handles a bounded number of requests at once and queues the others [option: rc_federation.concurrent]', async () => {
    const { admitted, releases, ask } = open({ sleep_limit: 100, concurrent: 2 });
    for (const name of ['1', '2', '3', '4']) void ask(name);
    void ask('other', 'b.example');
    await turn();
    assert.deepEqual(admitted, ['1', '2', 'other']);
    releases.get('2')?.();
    await turn();
    assert.equal(admitted.at(-1), '3');
    releases.get('1')?.();
    releases.get('3')?.();
    await turn();
    assert.equal(admitted.at(-1), '4');
    releases.get('4')?.();
    void ask('5');
    void ask('6');
    await turn();
    assert.deepEqual(admitted.slice(-2), ['5', '6']);
  });

  it('rejects requests when too many wait [option: rc_federation.reject_limit]', async () => {
    const { admitted, releases, ask } = open({ sleep_limit: 100, concurrent: 1, reject_limit: 2 });
    for (const name of ['1', '2', '3']) void ask(name);
    await turn();
    await assert.rejects(ask('4'), { status: 429, errcode: 'M_LIMIT_EXCEEDED' });
    await ask('other', 'b.example');
    releases.get('1')?.();
    await turn();
    void ask('5');
    releases.get('2')?.();
    await turn();
    assert.deepEqual(admitted, ['1', 'other', '2', '3']);
  });

  it('admits a request that does not have to wait although reject_limit is 0', async () => {
    const { admitted, ask } = open({ sleep_limit: 1, reject_limit: 0 });
    await ask('1');
    await assert.rejects(ask('2'), { errcode: 'M_LIMIT_EXCEEDED' });
    assert.deepEqual(admitted, ['1']);
  });
});
