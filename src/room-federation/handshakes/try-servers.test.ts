import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { MalformedResponse, RemoteError, ServerUnavailable } from '../../federation-client/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import { HandshakeFailure } from './handshake.ts';
import { tryServers } from './try-servers.ts';

type Outcome = Error | string;

const remote = (status: number, errcode: string, more = {}) =>
  new RemoteError('x.test', status, { errcode, error: errcode, ...more });

/**
 * Calls `tryServers` with scripted servers.
 * @returns the value or error, and the servers that received a request, with `!` where a backoff was ignored
 */
async function tryWithOutcomes(outcomes: Readonly<Record<string, Outcome>>, clock = manualClock()) {
  const requestedServers: string[] = [];
  const result = tryServers(Object.keys(outcomes), clock, async (server, ignoreBackoff) => {
    requestedServers.push(ignoreBackoff ? `${server}!` : server);
    const outcome = outcomes[server]!;
    if (typeof outcome === 'string') return outcome;
    if (ignoreBackoff && outcome instanceof ServerUnavailable) return 'after all';
    throw outcome;
  });
  return { value: await result.catch((error: unknown) => error), requestedServers };
}

const errorOf = async (...failures: Error[]) => {
  const { value } = await tryWithOutcomes(
    Object.fromEntries(failures.map((failure, index) => [`s${index}.test`, failure])),
  );
  assert.ok(value instanceof MatrixError, String(value));
  return [value.status, value.errcode];
};

describe('tryServers sends a request to one server after another', () => {
  it('sends no further request after the first success', async () => {
    const { value, requestedServers } = await tryWithOutcomes({
      'a.test': remote(403, 'M_FORBIDDEN'),
      'b.test': new HandshakeFailure('b.test', 'nonsense'),
      'c.test': 'done',
      'd.test': 'never',
    });
    assert.equal(value, 'done');
    assert.deepEqual(requestedServers, ['a.test', 'b.test', 'c.test']);
  });

  it('sends requests to servers in backoff only after all servers without backoff have failed', async () => {
    const inBackoff = new ServerUnavailable('a.test', { retryAt: 5 });
    const helped = await tryWithOutcomes({ 'a.test': inBackoff, 'b.test': 'done' });
    assert.deepEqual(helped, { value: 'done', requestedServers: ['a.test', 'b.test'] });
    const alone = await tryWithOutcomes({ 'a.test': inBackoff, 'b.test': new ServerUnavailable('b.test') });
    assert.deepEqual(alone, { value: 'after all', requestedServers: ['a.test', 'b.test', 'a.test!'] });
  });

  it('throws the most informative error of all servers', async () => {
    const unreachable = new ServerUnavailable('x.test');
    const unknownRoom = remote(404, 'M_NOT_FOUND');
    const unable = remote(400, 'M_UNABLE_TO_AUTHORISE_JOIN');
    const forbidden = remote(403, 'M_FORBIDDEN');
    assert.deepEqual(await errorOf(), [404, 'M_NOT_FOUND']);
    assert.deepEqual(await errorOf(unreachable), [502, 'M_UNKNOWN']);
    assert.deepEqual(await errorOf(unreachable, unknownRoom), [404, 'M_NOT_FOUND']);
    assert.deepEqual(await errorOf(unable, unknownRoom, unreachable), [400, 'M_UNABLE_TO_AUTHORISE_JOIN']);
    assert.deepEqual(await errorOf(unknownRoom, forbidden, unable), [403, 'M_FORBIDDEN']);
    assert.deepEqual(await errorOf(new MalformedResponse('x.test', 'nonsense')), [502, 'M_UNKNOWN']);
    assert.deepEqual(await errorOf(remote(401, 'M_UNKNOWN_TOKEN')), [502, 'M_UNKNOWN']);
  });

  it('throws the error of a server that received a request in spite of its backoff, and not the error of the backoff', async () => {
    const failure = new HandshakeFailure('a.test', 'the state has no create event');
    const outcome = tryServers(['a.test'], manualClock(), async (server, ignoreBackoff) => {
      throw ignoreBackoff ? failure : new ServerUnavailable(server, { retryAt: 5 });
    });
    await assert.rejects(outcome, { status: 502, message: failure.message });
  });

  it('throws the status and errcode of a server that refuses the event', async () => {
    for (const code of ['M_INVALID_PARAM', 'M_MISSING_PARAM', 'M_BAD_JSON', 'M_UNKNOWN', 'ORG.EXAMPLE.NO']) {
      assert.deepEqual(await errorOf(remote(400, code)), [400, code]);
    }
    assert.deepEqual(await errorOf(remote(400, 'M_BAD_JSON'), remote(403, 'M_FORBIDDEN')), [
      403,
      'M_FORBIDDEN',
    ]);
    assert.deepEqual(await errorOf(remote(404, 'M_NOT_FOUND'), remote(400, 'M_BAD_JSON')), [
      400,
      'M_BAD_JSON',
    ]);
  });

  it('throws 502 for errors of a server, errors of the authentication between servers, and missing endpoints', async () => {
    for (const [status, code] of [
      [500, 'M_FORBIDDEN'],
      [302, 'M_FORBIDDEN'],
      [401, 'M_UNAUTHORIZED'],
      [403, 'M_USER_LOCKED'],
      [404, 'M_UNRECOGNIZED'],
    ] as const) {
      assert.deepEqual(await errorOf(remote(status, code)), [502, 'M_UNKNOWN']);
    }
  });

  it('throws 429 with the retry_after_ms that a server demands', async () => {
    const busy = new RemoteError('x.test', 429, { errcode: 'M_LIMIT_EXCEEDED' }, 2_500);
    const { value } = await tryWithOutcomes({ 'a.test': busy });
    const { status, errcode, extra } = value as MatrixError;
    assert.deepEqual([status, errcode, extra], [429, 'M_LIMIT_EXCEEDED', { retry_after_ms: 2_500 }]);
  });

  it('throws M_INCOMPATIBLE_ROOM_VERSION with the room version that the server names', async () => {
    const { value } = await tryWithOutcomes({
      'a.test': remote(400, 'M_INCOMPATIBLE_ROOM_VERSION', { room_version: '99' }),
    });
    assert.deepEqual((value as MatrixError).extra, { room_version: '99' });
  });

  it('sends no further request after two minutes, and requests to at most twelve servers', async () => {
    const clock = manualClock();
    const requestedServers: string[] = [];
    const servers = ['a.test', 'b.test', 'c.test'];
    const slow = async (server: string) => {
      requestedServers.push(server);
      clock.advance(70_000);
      throw remote(403, 'M_FORBIDDEN');
    };
    await assert.rejects(tryServers(servers, clock, slow), { errcode: 'M_FORBIDDEN' });
    assert.deepEqual(requestedServers, ['a.test', 'b.test']);
    const many = Object.fromEntries(
      Array.from({ length: 40 }, (_, index) => [`s${index}.test`, remote(404, 'M_NOT_FOUND')]),
    );
    assert.equal((await tryWithOutcomes(many)).requestedServers.length, 12);
  });

  it('rethrows errors that are not due to a server', async () => {
    const { value, requestedServers } = await tryWithOutcomes({
      'a.test': new TypeError('a bug'),
      'b.test': 'done',
    });
    assert.ok(value instanceof TypeError);
    assert.deepEqual(requestedServers, ['a.test']);
  });
});
