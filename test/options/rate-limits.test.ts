import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { type ManualClock, manualClock } from '../support/clocks/manual-clock.ts';
import {
  type ApiAnswer,
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestUser,
} from '../support/servers/server.ts';

type Limits = NonNullable<ConfigurationOverrides['rateLimits']>;

/** Two actions at once, and one more every ten seconds. */
const tight = { per_second: 0.1, burst_count: 2 };
const lax = { per_second: 1_000, burst_count: 1_000 };

/** Rate limits of actions in rooms, tested on a whole homeserver. */
describe('rate limits of rooms', () => {
  let server: TestServer;
  let clock: ManualClock;
  afterEach(() => server.stop());

  const start = async (rateLimits: Limits, ...names: string[]) => {
    clock = manualClock();
    server = await startTestServer({ database: 'sqlite', clock, config: { rateLimits } });
    return Promise.all(names.map((name) => server.register(name)));
  };
  const post = ({ token }: TestUser, path: string, body: object = {}) =>
    server.api('POST', `/_matrix/client/v3${path}`, { token, body });
  const createRoom = async (user: TestUser) => {
    const { raw, body } = await post(user, '/createRoom', { preset: 'public_chat' });
    assert.ok(body['room_id'], raw);
    return encodeURIComponent(String(body['room_id']));
  };
  const createThreeRooms = async (user: TestUser) => [
    await createRoom(user),
    await createRoom(user),
    await createRoom(user),
  ];
  const join = (user: TestUser, roomId: string) => post(user, `/rooms/${roomId}/join`);
  const invite = (user: TestUser, roomId: string, { userId }: TestUser) =>
    post(user, `/rooms/${roomId}/invite`, { user_id: userId });
  const send = ({ token }: TestUser, roomId: string, txn: number) =>
    server.api('PUT', `/_matrix/client/v3/rooms/${roomId}/send/m.room.message/${txn}`, {
      token,
      body: { msgtype: 'm.text', body: 'x' },
    });

  /** Expects two attempts to succeed, and the third only after ten seconds. */
  async function expectLimit(attempt: (i: number) => Promise<ApiAnswer>): Promise<void> {
    for (let i = 0; i < 2; i++) assert.equal((await attempt(i)).status, 200);
    const { status, body } = await attempt(2);
    assert.deepEqual([status, body['errcode']], [429, 'M_LIMIT_EXCEEDED']);
    clock.advance(10_000);
    assert.equal((await attempt(2)).status, 200);
  }

  it('limits messages by sender [option: rc_message]', async () => {
    const [alice] = await start({ rc_message: tight }, 'alice');
    const roomId = await createRoom(alice!);
    clock.advance(60_000);
    await expectLimit((i) => send(alice!, roomId, i));
  });

  it("limits redactions of other users' messages separately from messages [option: rc_admin_redaction]", async () => {
    const [alice, bob] = await start({ rc_message: lax, rc_admin_redaction: tight }, 'alice', 'bob');
    const roomId = await createRoom(alice!);
    await join(bob!, roomId);
    const messagesOfBob = await Promise.all([0, 1, 2].map((i) => send(bob!, roomId, i)));
    const messagesOfAlice = await Promise.all([0, 1, 2].map((i) => send(alice!, roomId, i)));
    const redact = (answers: readonly ApiAnswer[], i: number) => {
      const eventId = encodeURIComponent(String(answers[i]!.body['event_id']));
      const path = `/_matrix/client/v3/rooms/${roomId}/redact/${eventId}/${eventId.slice(3)}${clock.now()}`;
      return server.api('PUT', path, { token: alice!.token, body: {} });
    };
    for (const i of [0, 1, 2]) assert.equal((await redact(messagesOfAlice, i)).status, 200);
    await expectLimit((i) => redact(messagesOfBob, i));
  });

  it('limits joins by user [option: rc_joins.local]', async () => {
    const [alice, bob] = await start({ rc_joins: { local: tight } }, 'alice', 'bob');
    const roomIds = await createThreeRooms(alice!);
    await expectLimit((i) => join(bob!, roomIds[i]!));
  });

  it('limits joins by room [option: rc_joins_per_room]', async () => {
    const [alice, ...others] = await start({ rc_joins_per_room: tight }, 'alice', 'bob', 'carol', 'dave');
    const roomId = await createRoom(alice!);
    clock.advance(60_000);
    await expectLimit((i) => join(others[i]!, roomId));
  });

  const invites = { per_room: lax, per_user: lax, per_issuer: lax };

  it('limits invites by room [option: rc_invites.per_room]', async () => {
    const limits = { rc_invites: { ...invites, per_room: tight } };
    const [alice, ...others] = await start(limits, 'alice', 'bob', 'carol', 'dave');
    const roomId = await createRoom(alice!);
    await expectLimit((i) => invite(alice!, roomId, others[i]!));
  });

  it('limits invites by invited user [option: rc_invites.per_user]', async () => {
    const [alice, bob] = await start({ rc_invites: { ...invites, per_user: tight } }, 'alice', 'bob');
    const roomIds = await createThreeRooms(alice!);
    await expectLimit((i) => invite(alice!, roomIds[i]!, bob!));
  });

  it('limits invites by inviter [option: rc_invites.per_issuer]', async () => {
    const limits = { rc_invites: { ...invites, per_issuer: tight } };
    const [alice, ...others] = await start(limits, 'alice', 'bob', 'carol', 'dave');
    const roomIds = await createThreeRooms(alice!);
    await expectLimit((i) => invite(alice!, roomIds[i]!, others[i]!));
  });

  it('limits new rooms by creator [option: rc_room_creation]', async () => {
    const [alice] = await start({ rc_room_creation: tight }, 'alice');
    await expectLimit(() => post(alice!, '/createRoom'));
  });
});
