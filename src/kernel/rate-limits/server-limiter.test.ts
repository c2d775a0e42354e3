import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { sectionDefaults } from '../../../test/support/inputs/section-defaults.ts';
import { rateLimitsSection, ServerLimiter } from './index.ts';

type Limit = ConstructorParameters<typeof ServerLimiter>[0];

/** Waits until pending promises have continued. */
const letPromisesContinue = () => new Promise(setImmediate);

function open(limit: Partial<Limit>, maxCallers?: number) {
  const clock = manualClock();
  const defaults = sectionDefaults(rateLimitsSection).rc_federation;
  const limiter = new ServerLimiter({ ...defaults, ...limit }, clock, maxCallers);
  const admitted: string[] = [];
  const releases = new Map<string, () => void>();
  const request = (name: string, server = 'a.example', signal?: AbortSignal) =>
    limiter.admit(server, signal).then((release) => {
      admitted.push(name);
      releases.set(name, release);
    });
  return { clock, limiter, admitted, releases, request };
}

describe('ServerLimiter', () => {
  it('delays requests beyond sleep_limit within a window [option: rc_federation.window_size, rc_federation.sleep_limit, rc_federation.sleep_delay]', async () => {
    const { clock, admitted, request } = open({
      window_size: 700,
      sleep_limit: 2,
      sleep_delay: 300,
      concurrent: 9,
    });
    for (const name of ['1', '2', '3']) void request(name);
    void request('other', 'b.example');
    await letPromisesContinue();
    assert.deepEqual(admitted, ['1', '2', 'other']);
    clock.advance(299);
    await letPromisesContinue();
    assert.equal(admitted.length, 3);
    clock.advance(1);
    await letPromisesContinue();
    assert.equal(admitted.at(-1), '3');
    clock.advance(400);
    void request('4');
    await letPromisesContinue();
    assert.equal(admitted.at(-1), '4');
  });

  it('handles a bounded number of requests at once and queues the others [option: rc_federation.concurrent]', async () => {
    const { admitted, releases, request } = open({ sleep_limit: 100, concurrent: 2 });
    for (const name of ['1', '2', '3', '4']) void request(name);
    void request('other', 'b.example');
    await letPromisesContinue();
    assert.deepEqual(admitted, ['1', '2', 'other']);
    releases.get('2')?.();
    await letPromisesContinue();
    assert.equal(admitted.at(-1), '3');
    releases.get('1')?.();
    releases.get('3')?.();
    await letPromisesContinue();
    assert.equal(admitted.at(-1), '4');
    releases.get('4')?.();
    void request('5');
    void request('6');
    await letPromisesContinue();
    assert.deepEqual(admitted.slice(-2), ['5', '6']);
  });

  it('rejects requests when too many wait [option: rc_federation.reject_limit]', async () => {
    const { admitted, releases, request } = open({ sleep_limit: 100, concurrent: 1, reject_limit: 2 });
    for (const name of ['1', '2', '3']) void request(name);
    await letPromisesContinue();
    await assert.rejects(request('4'), { status: 429, errcode: 'M_LIMIT_EXCEEDED' });
    await request('other', 'b.example');
    releases.get('1')?.();
    await letPromisesContinue();
    void request('5');
    releases.get('2')?.();
    await letPromisesContinue();
    assert.deepEqual(admitted, ['1', 'other', '2', '3']);
  });

  it('rejects waiting requests whose sender disconnects, and frees their places', async () => {
    const { admitted, releases, request, clock } = open({ sleep_limit: 4, concurrent: 1, reject_limit: 2 });
    const [queued, delayed] = [new AbortController(), new AbortController()];
    await request('1');
    const second = request('2', 'a.example', queued.signal);
    void request('3');
    queued.abort();
    await assert.rejects(second, { errcode: 'M_LIMIT_EXCEEDED' });
    void request('4');
    releases.get('1')?.();
    await letPromisesContinue();
    releases.get('3')?.();
    await letPromisesContinue();
    assert.deepEqual(admitted, ['1', '3', '4']);
    const fifth = request('5', 'a.example', delayed.signal);
    delayed.abort();
    await assert.rejects(fifth, { errcode: 'M_LIMIT_EXCEEDED' });
    releases.get('4')?.();
    clock.advance(10_000);
    await request('6');
    assert.equal(admitted.at(-1), '6');
  });

  it('keeps the requests of a bounded number of servers in memory', async () => {
    const { admitted, releases, request, clock } = open({ concurrent: 1 }, 20);
    for (let index = 0; index < 20; index++) await request(`${index}`, `s${index}.example`);
    await assert.rejects(request('20', 's20.example'), { status: 429, errcode: 'M_LIMIT_EXCEEDED' });
    releases.get('7')?.();
    await request('21', 's21.example');
    void request('again', 's0.example');
    await letPromisesContinue();
    assert.equal(admitted.includes('again'), false, 'a server with a request under way is not forgotten');
    releases.get('0')?.();
    await letPromisesContinue();
    for (const release of releases.values()) release();
    clock.advance(10_000);
    for (let index = 30; index < 50; index++) await request(`${index}`, `s${index}.example`);
  });

  it('admits a request that does not have to wait although reject_limit is 0', async () => {
    const { admitted, request } = open({ sleep_limit: 1, reject_limit: 0 });
    await request('1');
    await assert.rejects(request('2'), { errcode: 'M_LIMIT_EXCEEDED' });
    assert.deepEqual(admitted, ['1']);
  });
});
