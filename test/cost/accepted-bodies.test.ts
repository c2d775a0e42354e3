import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { costAfterRetries, exceeds } from '../support/clocks/thread-cost.ts';
import { startTestServer, type TestServer, type TestUser } from '../support/servers/server.ts';

const many = <T>(count: number, item: (index: number) => T) =>
  Array.from({ length: count }, (_, index) => item(index));
const entries = (count: number, entry: (index: number) => readonly [string, unknown]) =>
  Object.fromEntries(many(count, entry));

/** The largest requests that the server accepts, by a description of their bodies. */
const requests: Readonly<Record<string, readonly [method: string, path: string, body: () => object]>> = {
  'createRoom with 200 initial_state events': [
    'POST',
    '/createRoom',
    () => ({
      initial_state: many(200, (index) => ({ type: 'org.test', state_key: `${index}`, content: { index } })),
    }),
  ],
  'createRoom with long initial_state': [
    'POST',
    '/createRoom',
    () => ({
      initial_state: many(16, (index) => ({
        type: 'org.test',
        state_key: `${index}`,
        content: { a: 'x'.repeat(60_000) },
      })),
    }),
  ],
  'sendToDevice to 5,000 devices that do not exist': [
    'PUT',
    '/sendToDevice/m.test/TXN',
    () => ({ messages: entries(5_000, (index) => [`@user${index}:test`, { A: { body: 'x'.repeat(500) } }]) }),
  ],
  'sendToDevice to 5,000 devices of one user': [
    'PUT',
    '/sendToDevice/m.test/TXN',
    () => ({ messages: { '@alice:test': entries(5_000, (index) => [`D${index}`, { body: 'x' }]) } }),
  ],
  'keys/claim for 5,000 users': [
    'POST',
    '/keys/claim',
    () => ({ one_time_keys: entries(5_000, (index) => [`@user${index}:test`, { A: 'signed_curve25519' }]) }),
  ],
  'keys/query for 5,000 users': [
    'POST',
    '/keys/query',
    () => ({ device_keys: entries(5_000, (index) => [`@user${index}:test`, []]) }),
  ],
  'account data of 1 MB': [
    'PUT',
    '/user/@alice:test/account_data/m.test',
    () => ({ text: 'x'.repeat(1_000_000) }),
  ],
  'a search for 1,000 characters': [
    'POST',
    '/search',
    () => ({ search_categories: { room_events: { search_term: 'abcdefghij'.repeat(100) } } }),
  ],
};

describe('the cost of the largest requests that are accepted', () => {
  let server: TestServer;
  let alice: TestUser;
  before(async () => {
    server = await startTestServer({ database: 'sqlite' });
    alice = await server.register('alice');
  });
  after(() => server.stop());

  for (const [name, [method, path, body]] of Object.entries(requests)) {
    it(`${name} costs less than 200 ms of CPU and blocks for less than 50 ms`, async () => {
      const text = JSON.stringify(body());
      let count = 0;
      const allowed = { longest: 50, total: 200 };
      const cost = await costAfterRetries(allowed, async () => {
        const url = `${server.baseUrl}/_matrix/client/v3${path.replace('TXN', `${count++}`)}`;
        const headers = { authorization: `Bearer ${alice.token}`, 'content-type': 'application/json' };
        const response = await fetch(url, { method, headers, body: text });
        const answer = await response.text();
        assert.equal(response.status, 200, answer.slice(0, 200));
      });
      assert.ok(
        !exceeds(cost, allowed),
        `${Math.round(cost.total)} ms, ${Math.round(cost.longest)} at a time`,
      );
    });
  }
});
