import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { manualClock } from '../support/clocks/manual-clock.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestUser,
} from '../support/servers/server.ts';

type Content = Readonly<Record<string, unknown>>;

/** Rooms that new users join automatically, tested on a whole homeserver. */
describe('auto-join rooms', () => {
  let server: TestServer;
  afterEach(() => server.stop());

  const start = async (rooms: ConfigurationOverrides['rooms']) => {
    const config = { accounts: { allow_guest_access: true }, rooms: rooms ?? {} };
    // The clock stands still, so that on a slow machine the registration does not give up waiting for the
    // joins.
    server = await startTestServer({ database: 'sqlite', config, clock: manualClock() });
  };
  const get = ({ token }: TestUser, path: string) =>
    server.api('GET', `/_matrix/client/v3${path}`, { token });
  const roomsOf = async (user: TestUser) => {
    const { body, raw } = await get(user, '/sync');
    assert.ok('next_batch' in body, raw);
    return Object.keys((body['rooms'] as { join?: object } | undefined)?.join ?? {});
  };
  /** Asserts that the user is joined to `count` rooms. @returns the rooms */
  const assertJoined = async (user: TestUser, count: number) => {
    const rooms = await roomsOf(user);
    assert.equal(rooms.length, count);
    return rooms;
  };
  const state = async (user: TestUser, roomId: string, type: string): Promise<Content> =>
    (await get(user, `/rooms/${encodeURIComponent(roomId)}/state/${type}/`)).body;
  const registerGuest = async (): Promise<TestUser> => {
    const { body } = await server.api('POST', '/_matrix/client/v3/register', {
      query: { kind: 'guest' },
      body: {},
    });
    return { userId: String(body['user_id']), deviceId: '', token: String(body['access_token']) };
  };

  it('auto-join rooms are created for the first user and joined by later users, but not by guests when guests are excluded [option: auto_join_rooms, autocreate_auto_join_rooms_federated, auto_join_rooms_for_guests]', async () => {
    await start({
      auto_join_rooms: ['#lobby:test', '#elsewhere:other.example', '#news:test'],
      autocreate_auto_join_rooms_federated: false,
      auto_join_rooms_for_guests: false,
    });
    const earlyGuest = await registerGuest();
    const alice = await server.register('alice');
    const rooms = await assertJoined(alice, 2);
    const bob = await server.register('bob');
    assert.deepEqual((await assertJoined(bob, 2)).toSorted(), rooms.toSorted());
    const names = await Promise.all(
      rooms.map(async (room) => (await state(alice, room, 'm.room.name'))['name']),
    );
    assert.deepEqual(names.toSorted(), ['lobby', 'news']);
    for (const room of rooms) {
      assert.equal((await state(alice, room, 'm.room.create'))['m.federate'], false);
      assert.equal((await state(alice, room, 'm.room.join_rules'))['join_rule'], 'public');
    }
    assert.deepEqual(await roomsOf(earlyGuest), []);
  });

  it('auto-join rooms are joined by guests at registration when the option is on, and otherwise when the guests become users [option: auto_join_rooms_for_guests]', async () => {
    for (const forGuests of [false, true]) {
      await start({ auto_join_rooms: ['#lobby:test'], auto_join_rooms_for_guests: forGuests });
      const [room] = await assertJoined(await server.register('alice'), 1);
      const visitor = await registerGuest();
      assert.deepEqual(await assertJoined(visitor, forGuests ? 1 : 0), forGuests ? [room] : []);
      const { status, body, raw } = await server.api('POST', '/_matrix/client/v3/register', {
        body: {
          username: visitor.userId.slice(1).split(':')[0],
          password: 'correct horse',
          guest_access_token: visitor.token,
          auth: { type: 'm.login.dummy' },
        },
      });
      assert.equal(status, 200, raw);
      const user = { ...visitor, token: String(body['access_token']) };
      assert.deepEqual(await assertJoined(user, 1), [room]);
      const { user_id: userId } = (await get(user, '/account/whoami')).body;
      assert.equal(userId, visitor.userId);
      if (!forGuests) await server.stop();
    }
  });

  it('auto-join rooms are joined, but not created, when their creation is off [option: autocreate_auto_join_rooms, auto_join_rooms_for_guests]', async () => {
    await start({ auto_join_rooms: ['#lobby:test'], autocreate_auto_join_rooms: false });
    const alice = await server.register('alice');
    const body = { room_alias_name: 'lobby', preset: 'public_chat' };
    const created = await server.api('POST', '/_matrix/client/v3/createRoom', { token: alice.token, body });
    assert.equal(created.status, 200, created.raw);
    assert.deepEqual(await assertJoined(await server.register('bob'), 1), [created.body['room_id']]);
    assert.deepEqual(await assertJoined(await registerGuest(), 1), [created.body['room_id']]);
    assert.deepEqual(await roomsOf(alice), [created.body['room_id']]);
  });

  it('auto-join rooms with a private preset are created by the configured user, who invites new users to them [option: auto_join_mxid_localpart, autocreate_auto_join_room_preset]', async () => {
    for (const preset of ['private_chat', 'trusted_private_chat'] as const) {
      await start({
        auto_join_rooms: ['#lobby:test'],
        auto_join_mxid_localpart: 'host',
        autocreate_auto_join_room_preset: preset,
      });
      const alice = await server.register('alice');
      const [room] = await assertJoined(alice, 1);
      const bob = await server.register('bob');
      await assertJoined(bob, 1);
      assert.equal((await state(bob, room!, 'm.room.join_rules'))['join_rule'], 'invite');
      const { users } = await state(bob, room!, 'm.room.power_levels');
      const expected = preset === 'private_chat' ? {} : { [alice.userId]: 100, [bob.userId]: 100 };
      assert.deepEqual(users, { '@host:test': 100, ...expected });
      if (preset === 'private_chat') await server.stop();
    }
  });
});
