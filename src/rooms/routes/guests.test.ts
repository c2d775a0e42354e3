import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';

describe('guests in rooms', () => {
  let server: TestServer;
  let anna: TestClient;
  let guest: TestClient;
  before(async () => {
    server = await startTestServer({
      database: 'sqlite',
      config: { accounts: { allow_guest_access: true } },
    });
    anna = await TestClient.register(server, 'anna');
    guest = await newGuest();
  });
  after(() => server.stop());

  const newGuest = async () => {
    const { body } = await server.api('POST', '/_matrix/client/v3/register', {
      query: { kind: 'guest' },
      body: {},
    });
    return new TestClient(server, {
      userId: String(body['user_id']),
      deviceId: String(body['device_id']),
      token: String(body['access_token']),
    });
  };

  /** Waits until the user has left the room. */
  const untilLeft = async (user: TestClient, roomId: string, firstToken: string) => {
    let since = firstToken;
    await eventually(`${user.id} to have left`, async () => {
      const sync = await user.sync(since, { timeout: 1_000 });
      since = sync.next_batch;
      return sync.rooms?.leave?.[roomId];
    });
  };

  const roomForGuests = {
    preset: 'public_chat',
    initial_state: [{ type: 'm.room.guest_access', content: { guest_access: 'can_join' } }],
  };

  it('lets guests join rooms that allow guests and send messages there, but not create rooms or change memberships of other users', async () => {
    const closed = await anna.createRoom();
    const refused = await guest.call('POST', `/rooms/${enc(closed)}/join`, {});
    assert.deepEqual([refused.status, refused.body['errcode']], [403, 'M_GUEST_ACCESS_FORBIDDEN']);
    const answerOfStateRoute = await guest.call(
      'PUT',
      `/rooms/${enc(closed)}/state/m.room.member/${enc(guest.id)}`,
      {
        membership: 'join',
      },
    );
    assert.deepEqual(
      [answerOfStateRoute.status, answerOfStateRoute.body['errcode']],
      [403, 'M_GUEST_ACCESS_FORBIDDEN'],
    );
    const roomId = await anna.createRoom({ ...roomForGuests, power_level_content_override: { invite: 0 } });
    await guest.join(roomId);
    await guest.say(roomId, 'hello');
    for (const [path, body] of [
      ['invite', { user_id: '@x:test' }],
      ['kick', { user_id: anna.id }],
    ] as const) {
      assert.equal((await guest.call('POST', `/rooms/${enc(roomId)}/${path}`, body)).status, 403);
    }
    const invitation = await guest.call(
      'PUT',
      `/rooms/${enc(roomId)}/state/m.room.member/${enc('@x:test')}`,
      { membership: 'invite' },
    );
    assert.equal(invitation.status, 403);
    assert.equal((await guest.call('POST', '/createRoom', {})).status, 403);
    await guest.leave(roomId);
  });

  it('removes guests when the room forbids guest access', async () => {
    const roomId = await anna.createRoom(roomForGuests);
    await guest.join(roomId);
    const { next_batch } = await guest.sync();
    await anna.setState(roomId, 'm.room.guest_access', { guest_access: 'forbidden' });
    await untilLeft(guest, roomId, next_batch);
    assert.deepEqual((await guest.do('GET', '/joined_rooms'))['joined_rooms'], []);
    assert.ok(((await anna.do('GET', '/joined_rooms'))['joined_rooms'] as string[]).includes(roomId));
  });

  it('removes guests when the event that allows guests is redacted', async () => {
    const roomId = await anna.createRoom(roomForGuests);
    await guest.join(roomId);
    const { next_batch } = await guest.sync();
    const state = await anna.call('GET', `/rooms/${enc(roomId)}/state`);
    const guestAccessEvent = (state.body as unknown as { type: string; event_id: string }[]).find(
      ({ type }) => type === 'm.room.guest_access',
    );
    assert.ok(guestAccessEvent);
    await anna.redact(roomId, guestAccessEvent.event_id);
    await untilLeft(guest, roomId, next_batch);
  });

  it('lets guests read world-readable rooms without joining', async () => {
    const initial_state = [
      { type: 'm.room.history_visibility', content: { history_visibility: 'world_readable' } },
    ];
    const roomId = await anna.createRoom({ preset: 'public_chat', initial_state });
    await anna.say(roomId, 'for all');
    const page = await guest.call('GET', `/rooms/${enc(roomId)}/messages?dir=b`);
    assert.match(page.raw, /for all/);
    assert.equal((await guest.call('GET', `/rooms/${enc(roomId)}/state`)).status, 200);
  });

  it('lets guests read the capabilities, and does not remove a guest who has upgraded to an account from a room that begins to forbid guests', async () => {
    const { capabilities } = await guest.do('GET', '/capabilities');
    assert.ok(capabilities);
    const roomId = await anna.createRoom(roomForGuests);
    const otherGuest = await newGuest();
    await Promise.all([guest.join(roomId), otherGuest.join(roomId)]);
    const { next_batch } = await otherGuest.sync();
    const username = guest.id.slice(1, guest.id.indexOf(':'));
    const account = { username, password: 'password', inhibit_login: true };
    const { body } = await server.api('POST', '/_matrix/client/v3/register', {
      body: { ...account, guest_access_token: guest.token, auth: { type: 'm.login.dummy' } },
    });
    assert.equal(body['user_id'], guest.id);
    await anna.setState(roomId, 'm.room.guest_access', { guest_access: 'forbidden' });
    await guest.createRoom();
    await untilLeft(otherGuest, roomId, next_batch);
    const { joined } = await anna.do('GET', `/rooms/${enc(roomId)}/joined_members`);
    assert.deepEqual(Object.keys(joined as object).sort(), [anna.id, guest.id].sort());
    const entry = await eventually('the entry of the guest in the user directory', async () => {
      const { results } = await anna.do('POST', '/user_directory/search', { search_term: username });
      return (results as unknown[]).length > 0 && results;
    });
    assert.deepEqual(entry, [{ user_id: guest.id }], 'other users find the guest');
  });
});
