import assert from 'node:assert/strict';
import { it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { Networks, type NetworksDeps } from './networks.ts';

it('Networks requests a protocol from a failing service once for concurrent callers, and again after 30 seconds', async () => {
  const clock = manualClock();
  let requestCount = 0;
  let answer: { status: number; json: unknown } | undefined;
  const client = {
    send: async () => {
      requestCount += 1;
      if (answer === undefined) throw new Error('no response');
      return answer;
    },
  };
  const service = { id: 'irc', registration: { protocols: ['irc'], url: 'http://irc' } };
  const deps = { services: [service], client, clock, log: silentLogger };
  const networks = new Networks(deps as unknown as NetworksDeps);
  await Promise.all([networks.protocols(), networks.protocols()]);
  for (let count = 0; count < 3; count++) await networks.protocols();
  await assert.rejects(networks.protocol('other'), { errcode: 'M_NOT_FOUND' });
  assert.equal(requestCount, 1);
  answer = { status: 200, json: { instances: [] } };
  clock.advance(30_000);
  assert.deepEqual(Object.keys(await networks.protocols()), ['irc']);
  assert.equal(requestCount, 2);
});
