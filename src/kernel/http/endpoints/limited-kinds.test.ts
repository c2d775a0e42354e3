import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { eventually } from '../../../../test/clients/eventually.ts';
import { systemClock } from '../../clock.ts';
import { silentLogger } from '../../observability/index.ts';
import { UserSlots } from '../../rate-limits/index.ts';
import { createHttpServer, type HttpServer, route } from '../index.ts';

describe('requests of one user to routes with large responses', () => {
  let http: HttpServer;
  let base: string;
  /** Functions that answer the requests that are being handled, in the order in which their handling began. */
  let answers: (() => void)[];
  beforeEach(async () => {
    answers = [];
    http = createHttpServer({
      listeners: [
        {
          name: 'test',
          bind: { kind: 'tcp', port: 0, addresses: ['127.0.0.1'], tls: undefined },
          resources: [{ names: ['client'], compress: false }],
          forwarded: false,
          requestIdHeader: undefined,
        },
      ],
      routes: [
        route(
          { method: 'GET', path: '/_proto/client/v3/large', auth: 'user', limitedKind: 'large response' },
          () => new Promise<object>((resolve) => answers.push(() => resolve({}))),
        ),
      ],
      authenticator: {
        authenticate: (token) => ({
          userId: `@${token}:test`,
          deviceId: undefined,
          isGuest: false,
          isAdmin: false,
          appservice: token === 'bridge' ? 'irc' : undefined,
          tokenId: undefined,
        }),
      },
      log: silentLogger,
      clock: systemClock,
    });
    base = (await http.start())[0]!;
  });
  afterEach(() => http.stop(0));

  const request = (token: string) =>
    fetch(`${base}/_matrix/client/v3/large`, { headers: { authorization: `Bearer ${token}` } });
  const count = async (expected: number) => {
    await eventually(`${expected} requests that are handled`, () => answers.length === expected);
  };

  it('handles 20 at a time, one more whenever a response is sent, and requests of another user at once', async () => {
    const sent = Array.from({ length: 22 }, () => request('alice'));
    await count(20);
    const ofBob = request('bob');
    await count(21);
    answers[0]!();
    await count(22);
    answers[1]!();
    await count(23);
    for (const answer of answers) answer();
    const statuses = (await Promise.all([...sent, ofBob])).map(({ status }) => status);
    assert.deepEqual(new Set(statuses), new Set([200]));
  });

  it('handles all requests of an application service at once', async () => {
    const sent = Array.from({ length: 30 }, () => request('bridge'));
    await count(30);
    for (const answer of answers) answer();
    await Promise.all(sent);
  });

  it('refuses requests with M_LIMIT_EXCEEDED while 1,000 wait', async () => {
    const slots = new UserSlots();
    const taken = Array.from({ length: 1_020 }, () => slots.take('@alice:test', 'large response'));
    assert.throws(() => slots.take('@alice:test', 'large response'), { errcode: 'M_LIMIT_EXCEEDED' });
    assert.equal(typeof slots.take('@alice:test', 'long poll'), 'function');
    for (const slot of taken) (await slot)();
    assert.equal(typeof slots.take('@alice:test', 'large response'), 'function');
  });
});
