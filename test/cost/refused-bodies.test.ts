import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Type } from 'typebox';
import { BodyChecker } from '../../src/kernel/http/requests/validation.ts';
import { costAfterRetries, exceeds } from '../support/clocks/thread-cost.ts';
import { startTestServer, type TestServer, type TestUser } from '../support/servers/server.ts';

describe('the cost of large bodies that are refused', () => {
  let server: TestServer;
  let alice: TestUser;
  before(async () => {
    server = await startTestServer({ database: 'sqlite' });
    alice = await server.register('alice');
  });
  after(() => server.stop());

  it('a first request of sliding sync with 5,000 lists costs less than 200 ms of CPU and blocks for less than 50 ms', async () => {
    const list = { ranges: [[0, 10]], timeline_limit: 1, required_state: [['m.room.name', '']] };
    const lists = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`list${index}`, list]));
    const body = JSON.stringify({ lists });
    const url = `${server.baseUrl}/_matrix/client/unstable/org.matrix.simplified_msc3575/sync`;
    const headers = { authorization: `Bearer ${alice.token}`, 'content-type': 'application/json' };
    const allowed = { longest: 50, total: 200 };
    const cost = await costAfterRetries(allowed, async () => {
      const response = await fetch(url, { method: 'POST', headers, body });
      const answer = await response.text();
      assert.equal(response.status, 400, answer.slice(0, 200));
    });
    assert.ok(!exceeds(cost, allowed), `${Math.round(cost.total)} ms, ${Math.round(cost.longest)} at a time`);
  });

  it('the error about one invalid value after 36,000 valid lists costs less than 50 ms of CPU', async () => {
    const lists = Type.Record(
      Type.String(),
      Type.Union([Type.Object({ rows: Type.Array(Type.Array(Type.String())) }), Type.Null()]),
    );
    const rows = Array.from({ length: 190 }, () => ['a', 'b']);
    const body = Object.fromEntries(Array.from({ length: 190 }, (_, index) => [`l${index}`, { rows }]));
    const last = { rows: [...rows, [7]] };
    const checker = new BodyChecker(lists);
    const allowed = { longest: 50, total: 50 };
    const cost = await costAfterRetries(allowed, async () =>
      assert.throws(() => checker.check({ ...body, last }), /'last\.rows\.190\.0' must be string/),
    );
    assert.ok(!exceeds(cost, allowed), `${Math.round(cost.total)} ms`);
  });
});
