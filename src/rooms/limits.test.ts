import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { startTestServer, type TestServer } from '../../test/support/servers/server.ts';
import { enc, TestClient } from '../../test/support/users/test-client.ts';
import { Throttle } from './limits.ts';

const twoActions = { per_second: 0, burst_count: 2 };
const noActions = { per_second: 0, burst_count: 0 };
const unlimited = { per_second: 1e6, burst_count: 1e6 };

type Limits = Record<string, unknown>;

/** Repeats a request until it is refused, at most ten times. @returns how often it succeeded */
async function timesUntilRefused(
  request: (index: number) => Promise<{ status: number; body: Record<string, unknown> }>,
) {
  for (let index = 0; index < 10; index++) {
    const { status, body } = await request(index);
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
    rc_message: unlimited,
    rc_joins: { local: unlimited, remote: unlimited },
    rc_joins_per_room: unlimited,
    rc_invites: { per_room: unlimited, per_user: unlimited, per_issuer: unlimited },
    rc_room_creation: unlimited,
    rc_registration: unlimited,
    rc_login: { address: unlimited, account: unlimited, failed_attempts: unlimited },
  };
  after(() => server?.stop());

  const testLimit = (
    name: string,
    limits: Limits,
    countAccepted: (anna: TestClient, ben: TestClient, roomId: string) => Promise<number>,
  ) =>
    it(name, async () => {
      await server?.stop();
      const [anna, ben] = await open(limits);
      assert.equal(await countAccepted(anna, ben, await anna.createRoom()), 2);
    });

  testLimit('rc_message limits messages', { rc_message: twoActions }, (anna, _ben, roomId) =>
    timesUntilRefused((index) => anna.call('PUT', `/rooms/${enc(roomId)}/send/m/${index}`, {})),
  );
  testLimit('rc_message limits state events', { rc_message: twoActions }, (anna, _ben, roomId) =>
    timesUntilRefused((index) => anna.call('PUT', `/rooms/${enc(roomId)}/state/m/${index}`, {})),
  );
  testLimit('rc_message limits knocks', { rc_message: twoActions }, (anna, ben) =>
    timesUntilRefused(async () => {
      const initial_state = [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }];
      const roomId = await anna.createRoom({ initial_state });
      return ben.call('POST', `/knock/${enc(roomId)}`, {});
    }),
  );
  testLimit(
    "rc_message limits changes of a user's profile in a room",
    { rc_message: twoActions },
    (anna, _ben, roomId) =>
      timesUntilRefused((index) =>
        anna.call('PUT', `/rooms/${enc(roomId)}/state/m.room.member/${enc(anna.id)}`, {
          membership: 'join',
          displayname: `Anna ${index}`,
        }),
      ),
  );
  testLimit(
    'rc_message limits redactions when rc_admin_redaction is not set',
    { rc_message: twoActions },
    (anna, _ben, roomId) =>
      timesUntilRefused((index) => anna.call('PUT', `/rooms/${enc(roomId)}/redact/$x/${index}`, {})),
  );
  testLimit(
    "rc_admin_redaction limits redactions of other users' events",
    { rc_admin_redaction: twoActions },
    async (anna, ben, roomId) => {
      await ben.join(roomId);
      const [messageOfAnna, messageOfBen] = [await anna.say(roomId, 'a'), await ben.say(roomId, 'b')];
      for (let count = 0; count < 3; count++) await anna.redact(roomId, messageOfAnna);
      return timesUntilRefused((index) =>
        anna.call('PUT', `/rooms/${enc(roomId)}/redact/${enc(messageOfBen)}/${index}`, {}),
      );
    },
  );
  testLimit(
    'rc_joins.local limits joins of rooms that this server is in',
    { rc_joins: { local: twoActions, remote: unlimited } },
    (anna, ben) =>
      timesUntilRefused(async () => ben.call('POST', `/rooms/${enc(await anna.createRoom())}/join`, {})),
  );
  testLimit(
    'rc_joins_per_room limits the joins of one room',
    { rc_joins_per_room: twoActions },
    (_anna, ben, roomId) =>
      timesUntilRefused(async () => {
        const answer = await ben.call('POST', `/rooms/${enc(roomId)}/join`, {});
        if (answer.status === 200) await ben.leave(roomId);
        return answer;
      }),
  );
  for (const name of ['per_room', 'per_user', 'per_issuer']) {
    const rc_invites = {
      per_room: unlimited,
      per_user: unlimited,
      per_issuer: unlimited,
      [name]: twoActions,
    };
    testLimit(`rc_invites.${name} limits invites`, { rc_invites }, (anna, ben, roomId) =>
      timesUntilRefused(async () => {
        const answer = await anna.call('POST', `/rooms/${enc(roomId)}/invite`, { user_id: ben.id });
        if (answer.status === 200) await ben.leave(roomId);
        return answer;
      }),
    );
  }

  it('rc_room_creation limits new rooms, and rc_invites.per_room limits the invites of a new room', async () => {
    await server?.stop();
    const [anna, ben] = await open({
      rc_room_creation: twoActions,
      rc_invites: { per_room: noActions, per_user: unlimited, per_issuer: unlimited },
    });
    const invited = await anna.call('POST', '/createRoom', { invite: [ben.id] });
    assert.equal(invited.status, 429);
    assert.equal(await timesUntilRefused(() => anna.call('POST', '/createRoom', {})), 2);
  });

  it('answers 429 before the body is read when a limit is reached, except to repeated transaction ids', async () => {
    await server?.stop();
    const [anna] = await open({
      rc_message: twoActions,
      rc_room_creation: { per_second: 0, burst_count: 1 },
      rc_reports: noActions,
    });
    const room = `/rooms/${enc(await anna.createRoom())}`;
    const first = await anna.do('PUT', `${room}/send/m.room.message/one`, {});
    await anna.do('PUT', `${room}/send/m.room.message/two`, {});
    const malformed = '{';
    for (const [method, path] of [
      ['PUT', `${room}/send/m.room.message/three`],
      ['POST', `${room}/send/m.room.message`],
      ['PUT', `${room}/send/m.other/one`],
      ['PUT', `${room}/state/m.room.topic`],
      ['PUT', `${room}/state/m.custom/key`],
      ['POST', '/createRoom'],
      ['POST', `${room}/report/$event`],
      ['POST', `${room}/report`],
      ['POST', `/users/${enc(anna.id)}/report`],
    ] as const) {
      const { status, body } = await anna.call(method, path, malformed);
      assert.deepEqual([status, body['errcode']], [429, 'M_LIMIT_EXCEEDED'], path);
    }
    const repeated = await anna.call('PUT', `${room}/send/m.room.message/one`, {});
    assert.deepEqual([repeated.status, repeated.body], [200, first]);
    const otherBody = await anna.call('PUT', `${room}/send/m.room.message/one`, malformed);
    assert.deepEqual([otherBody.status, otherBody.body['errcode']], [400, 'M_NOT_JSON']);
  });

  it('applies no rate limit to unlimited application services and to the server itself', () => {
    const failingLimit = { take: () => assert.fail('limited'), check: () => assert.fail('limited') };
    const throttle = new Throttle({
      rc_message: failingLimit,
      rc_admin_redaction: failingLimit,
      rc_joins: failingLimit,
      rc_remote_joins: failingLimit,
      rc_joins_per_room: failingLimit,
      rc_invites: { per_room: failingLimit, per_user: failingLimit, per_issuer: failingLimit },
      rc_room_creation: failingLimit,
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
