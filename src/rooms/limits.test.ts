import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { startTestServer, type TestServer } from '../../test/support/servers/server.ts';
import { enc, TestClient } from '../../test/support/users/test-client.ts';
import { Throttle } from './limits.ts';

const few = { per_second: 0, burst_count: 2 };
const none = { per_second: 0, burst_count: 0 };
const many = { per_second: 1e6, burst_count: 1e6 };

type Limits = Record<string, unknown>;

/** Repeats a request until it is refused. @returns how often it succeeded */
async function timesUntilRefused(
  act: (index: number) => Promise<{ status: number; body: Record<string, unknown> }>,
) {
  for (let index = 0; index < 10; index++) {
    const { status, body } = await act(index);
    if (status === 200) continue;
    assert.deepEqual([status, body['errcode']], [429, 'M_LIMIT_EXCEEDED']);
    assert.ok(Number(body['retry_after_ms']) > 0);
    return index;
  }
  return 10;
}

describe('rate limits of actions in rooms', () => {
  let server: TestServer | undefined;
  const open = async (limits: Limits) => {
    server = await startTestServer({
      database: 'sqlite',
      config: { rateLimits: { ...generousRoomLimits, ...limits } },
    });
    return [await TestClient.register(server, 'anna'), await TestClient.register(server, 'ben')] as const;
  };
  const generousRoomLimits = {
    rc_message: many,
    rc_joins: { local: many, remote: many },
    rc_joins_per_room: many,
    rc_invites: { per_room: many, per_user: many, per_issuer: many },
    rc_room_creation: many,
    rc_registration: many,
    rc_login: { address: many, account: many, failed_attempts: many },
  };
  after(() => server?.stop());

  const limited = (
    name: string,
    limits: Limits,
    act: (anna: TestClient, ben: TestClient, roomId: string) => Promise<number>,
  ) =>
    it(name, async () => {
      await server?.stop();
      const [anna, ben] = await open(limits);
      assert.equal(await act(anna, ben, await anna.createRoom()), 2);
    });

  limited('rc_message limits messages', { rc_message: few }, (anna, _ben, roomId) =>
    timesUntilRefused((index) => anna.call('PUT', `/rooms/${enc(roomId)}/send/m/${index}`, {})),
  );
  limited('rc_message limits state events', { rc_message: few }, (anna, _ben, roomId) =>
    timesUntilRefused((index) => anna.call('PUT', `/rooms/${enc(roomId)}/state/m/${index}`, {})),
  );
  limited(
    'rc_message limits redactions when rc_admin_redaction is not set',
    { rc_message: few },
    (anna, _ben, roomId) =>
      timesUntilRefused((index) => anna.call('PUT', `/rooms/${enc(roomId)}/redact/$x/${index}`, {})),
  );
  limited(
    "rc_admin_redaction limits redactions of other users' events",
    { rc_admin_redaction: few },
    (anna, _ben, roomId) =>
      timesUntilRefused((index) => anna.call('PUT', `/rooms/${enc(roomId)}/redact/$x/${index}`, {})),
  );
  limited(
    'rc_joins.local limits joins of rooms that this server is in',
    { rc_joins: { local: few, remote: many } },
    (anna, ben) =>
      timesUntilRefused(async () => ben.call('POST', `/rooms/${enc(await anna.createRoom())}/join`, {})),
  );
  limited(
    'rc_joins_per_room limits the joins of one room',
    { rc_joins_per_room: few },
    (_anna, ben, roomId) =>
      timesUntilRefused(async () => {
        const answer = await ben.call('POST', `/rooms/${enc(roomId)}/join`, {});
        if (answer.status === 200) await ben.leave(roomId);
        return answer;
      }),
  );
  for (const name of ['per_room', 'per_user', 'per_issuer']) {
    const rc_invites = { per_room: many, per_user: many, per_issuer: many, [name]: few };
    limited(`rc_invites.${name} limits invites`, { rc_invites }, (anna, ben, roomId) =>
      timesUntilRefused(async () => {
        const answer = await anna.call('POST', `/rooms/${enc(roomId)}/invite`, { user_id: ben.id });
        if (answer.status === 200) await ben.leave(roomId);
        return answer;
      }),
    );
  }

  it('rc_room_creation limits new rooms, and rc_invites.per_room the invites of a new room', async () => {
    await server?.stop();
    const [anna, ben] = await open({
      rc_room_creation: few,
      rc_invites: { per_room: none, per_user: many, per_issuer: many },
    });
    const invited = await anna.call('POST', '/createRoom', { invite: [ben.id] });
    assert.equal(invited.status, 429);
    assert.equal(await timesUntilRefused(() => anna.call('POST', '/createRoom', {})), 2);
  });

  it('applies no rate limit to application services and the server itself', () => {
    const full = { take: () => assert.fail('limited'), check: () => assert.fail('limited') };
    const throttle = new Throttle({
      rc_message: full,
      rc_admin_redaction: full,
      rc_joins: full,
      rc_remote_joins: full,
      rc_joins_per_room: full,
      rc_invites: { per_room: full, per_user: full, per_issuer: full },
      rc_room_creation: full,
    });
    for (const requester of [
      undefined,
      { userId: '@bridge:test', appservice: 'bridge', isUnlimited: true },
    ]) {
      throttle.join(requester, '!a:test');
      throttle.remoteJoin(requester);
      throttle.invite(requester, '!a:test', '@b:test');
      throttle.creation(requester, 5);
    }
    throttle.message({ userId: '@bridge:test', appservice: 'bridge', isUnlimited: true });
    throttle.redactionOfOthers({ userId: '@bridge:test', appservice: 'bridge', isUnlimited: true });
  });
});
