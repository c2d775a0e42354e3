import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { type HostAddress, LookupQueue } from './lookup-queue.ts';

const address: readonly HostAddress[] = [{ address: '192.0.2.1', family: 4 }];
const temporaryFailure = { code: 'EAI_AGAIN' };

describe('the queue of host look-ups', () => {
  /** A queue whose look-ups end when the test ends them. */
  function queue() {
    const clock = manualClock();
    const lookups: { host: string; end: (error?: Error) => void }[] = [];
    const lookupQueue = new LookupQueue((host) => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly HostAddress[]>();
      lookups.push({ host, end: (error) => (error ? reject(error) : resolve(address)) });
      return promise;
    }, clock);
    const hosts = () => lookups.map(({ host }) => host);
    return { clock, lookups, hosts, addresses: (host: string) => lookupQueue.addresses(host) };
  }

  it('looks up four hosts at a time, and the others in their order', async () => {
    const { addresses, hosts, lookups } = queue();
    const results = ['a', 'b', 'c', 'd', 'e', 'f'].map((host) => addresses(host));
    assert.deepEqual(hosts(), ['a', 'b', 'c', 'd']);
    lookups[1]!.end();
    lookups[2]!.end(Object.assign(new Error('no such host'), { code: 'ENOTFOUND' }));
    assert.deepEqual(await results[1], address);
    await assert.rejects(results[2]!, { code: 'ENOTFOUND' });
    for (const index of [0, 3, 4, 5]) {
      lookups[index]!.end();
      assert.deepEqual(await results[index], address);
    }
    assert.deepEqual(hosts(), ['a', 'b', 'c', 'd', 'e', 'f']);
  });

  it('looks up a host once for concurrent callers', async () => {
    const { addresses, hosts, lookups } = queue();
    const results = [addresses('a'), addresses('a')];
    lookups[0]!.end();
    assert.deepEqual(await Promise.all(results), [address, address]);
    assert.deepEqual(hosts(), ['a']);
  });

  it('does not look up hosts that have waited for more than eight seconds', async () => {
    const { addresses, clock, hosts, lookups } = queue();
    const stuck = Array.from({ length: 4 }, (_, index) => addresses(`silent${index}`));
    const late = Array.from({ length: 500 }, (_, index) => addresses(`late${index}`));
    const rejections = Promise.all(late.map((result) => assert.rejects(result, temporaryFailure)));
    clock.advance(9_000);
    const next = addresses('next');
    await rejections;
    lookups[0]!.end();
    await stuck[0];
    assert.deepEqual(hosts().slice(4), ['next']);
    lookups[4]!.end();
    assert.deepEqual(await next, address);
  });

  it('rejects further hosts while a thousand wait', async () => {
    const { addresses, lookups } = queue();
    const results = Array.from({ length: 1_004 }, (_, index) => addresses(`host${index}`));
    await assert.rejects(addresses('one more'), temporaryFailure);
    for (let index = 0; index < results.length; index++) {
      lookups[index]!.end();
      await results[index];
    }
  });
});
