import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../test/support/servers/server.ts';
import { registerAdmin } from '../../test/support/users/register-admin.ts';
import { enc, TestClient } from '../../test/support/users/test-client.ts';

const path = '/_synapse/admin/v1/send_server_notice';
const notices = '@notices:test';
const text = (body: string) => ({ msgtype: 'm.text', body });

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('send_server_notice', () => {
    let server: TestServer;
    let admin: TestClient;
    before(async () => {
      server = await startTestServer({
        database: kind,
        config: {
          serverNotices: { server_notices: { system_mxid_localpart: 'notices' } },
          // None of these options applies to notice rooms.
          rooms: {
            block_non_admin_invites: true,
            encryption_enabled_by_default_for_room_type: 'all',
            default_power_level_content_override: { private_chat: { users_default: 100, events_default: 0 } },
          },
          directory: { user_directory: { search_all_users: true } },
        },
      });
      admin = await registerAdmin(server);
    });
    after(() => server.stop());

    let names = 0;
    const newcomer = () => TestClient.register(server, `user${names++}`);
    const notify = async (user: TestClient, body: string, more: object = {}) => {
      const answer = await admin.request('POST', path, { user_id: user.id, content: text(body), ...more });
      assert.equal(answer.status, 200, answer.raw);
      return String(answer.body['event_id']);
    };
    const invitesOf = async (user: TestClient) => (await user.sync()).rooms?.invite ?? {};
    /** Returns the only room that a user is invited to. */
    const invited = async (user: TestClient) => {
      const rooms = Object.keys(await invitesOf(user));
      assert.equal(rooms.length, 1);
      return rooms[0]!;
    };
    /** Registers a user and joins them to their notice room. */
    const reader = async () => {
      const user = await newcomer();
      await notify(user, 'welcome');
      const roomId = await invited(user);
      await user.join(roomId);
      return { user, roomId };
    };
    const stateOf = (user: TestClient, roomId: string, type: string) =>
      user.do('GET', `/rooms/${enc(roomId)}/state/${type}/`);
    const bodiesIn = async (user: TestClient, roomId: string) => {
      const { chunk } = await user.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, { dir: 'b' });
      const events = chunk as { type: string; sender: string; content: { body?: string } }[];
      return events.filter(({ type }) => type === 'm.room.message').map(({ content }) => content.body);
    };
    const codeOf = ({ status, body }: { status: number; body: Record<string, unknown> }) => [
      status,
      body['errcode'],
    ];

    it('invites the user to a notice room and sends the notice there [option: server_notices.system_mxid_localpart, server_notices.system_mxid_display_name, server_notices.room_name]', async () => {
      const user = await newcomer();
      const eventId = await notify(user, 'maintenance at noon');
      const invites = await invitesOf(user);
      const roomId = await invited(user);
      const strippedState = invites[roomId]!.invite_state.events;
      const shown = (type: string) => strippedState.find((event) => event.type === type);
      assert.deepEqual(shown('m.room.name')?.content, { name: 'Server Notices' });
      assert.equal(shown('m.room.name')?.sender, notices);
      assert.equal(shown('m.room.encryption'), undefined);
      await user.join(roomId);
      const seen = (await user.sync()).rooms!.join![roomId]!;
      const tag = seen.account_data.events.find(({ type }) => type === 'm.tag');
      assert.deepEqual(tag?.content, { tags: { 'm.server_notice': {} } });
      const event = seen.timeline.events.find(({ event_id: id }) => id === eventId);
      assert.deepEqual(
        [event?.sender, event?.type, event?.content],
        [notices, 'm.room.message', text('maintenance at noon')],
      );
      const { joined } = await user.do('GET', `/rooms/${enc(roomId)}/joined_members`);
      assert.equal((joined as Record<string, { display_name: string }>)[notices]?.display_name, 'Notices');
      assert.deepEqual(await user.do('GET', `/profile/${notices}`), { displayname: 'Notices' });
      assert.equal((await stateOf(user, roomId, 'm.room.create'))['m.federate'], false);
      const topic = await user.call('GET', `/rooms/${enc(roomId)}/state/m.room.topic/`);
      assert.equal(topic.status, 404);
    });

    it('sends concurrent notices to a user into the same room', async () => {
      const user = await newcomer();
      const bodies = ['one', 'two', 'three', 'four'];
      await Promise.all(bodies.map((body) => notify(user, body)));
      const roomId = await invited(user);
      await user.join(roomId);
      await notify(user, 'five');
      assert.deepEqual((await bodiesIn(user, roomId)).sort(), [...bodies, 'five'].sort());
      assert.equal(Object.keys(await invitesOf(user)).length, 0);
    });

    it('sends message and state events as notices, but no memberships and redactions', async () => {
      const { user, roomId } = await reader();
      const limit = {
        msgtype: 'm.server_notice',
        server_notice_type: 'm.server_notice.usage_limit_reached',
        admin_contact: 'mailto:admin@test',
        limit_type: 'monthly_active_user',
        body: 'We are full.',
      };
      const first = await notify(user, '', { content: limit, state_key: null });
      await notify(user, '', { type: 'm.room.pinned_events', state_key: '', content: { pinned: [first] } });
      assert.deepEqual(await stateOf(user, roomId, 'm.room.pinned_events'), { pinned: [first] });
      const event = await user.do('GET', `/rooms/${enc(roomId)}/event/${enc(first)}`);
      assert.deepEqual(event['content'], limit);
      await notify(user, '', { type: 'org.example.ad', content: { any: 1 } });
      const content = { membership: 'invite' };
      for (const wrong of [
        { type: 'm.room.member', state_key: '@ann:elsewhere', content },
        { type: 'm.room.redaction', content: { redacts: first } },
      ]) {
        const refused = await admin.request('POST', path, { user_id: user.id, ...wrong });
        assert.deepEqual(codeOf(refused), [400, 'M_INVALID_PARAM']);
      }
    });

    it('sends a notice once per transaction id, also after a restart', async () => {
      const { user, roomId } = await reader();
      const put = async (txnId: string, body: string) => {
        const answer = await admin.request('PUT', `${path}/${txnId}`, {
          user_id: user.id,
          content: text(body),
        });
        assert.equal(answer.status, 200, answer.raw);
        return answer.body['event_id'];
      };
      const [first, again] = await Promise.all([put('a', 'once'), put('a', 'once')]);
      assert.equal(again, first);
      assert.notEqual(await put('b', 'other'), first);
      await server.restart();
      assert.equal(await put('a', 'once'), first);
      assert.deepEqual(await bodiesIn(user, roomId), ['other', 'once', 'welcome']);
    });

    it('rejects changes by users to their notice room with 403 M_FORBIDDEN', async () => {
      const { user, roomId } = await reader();
      const room = `/rooms/${enc(roomId)}`;
      const other = await newcomer();
      const refused = [
        await user.call('PUT', `${room}/send/m.room.message/1`, text('no')),
        await user.call('PUT', `${room}/send/m.reaction/2`, {
          'm.relates_to': { rel_type: 'm.annotation', event_id: await notify(user, 'like it?'), key: '+' },
        }),
        await user.call('PUT', `${room}/state/m.room.topic/`, { topic: 'mine' }),
        await user.call('PUT', `${room}/state/m.room.power_levels/`, { users: { [user.id]: 100 } }),
        await user.call('POST', `${room}/invite`, { user_id: other.id }),
        await user.call('POST', `${room}/kick`, { user_id: notices }),
        await user.call('PUT', `/directory/list/room/${enc(roomId)}`, { visibility: 'public' }),
        await other.call('POST', `/join/${enc(roomId)}`, {}),
      ];
      for (const answer of refused) assert.deepEqual(codeOf(answer), [403, 'M_FORBIDDEN'], answer.raw);
      const { chunk } = await user.do('GET', '/publicRooms');
      assert.deepEqual(chunk, []);
    });

    it('rejects leaving a notice room and rejecting its invite with 403 M_CANNOT_LEAVE_SERVER_NOTICE_ROOM', async () => {
      const code = 'M_CANNOT_LEAVE_SERVER_NOTICE_ROOM';
      const user = await newcomer();
      await notify(user, 'welcome');
      const roomId = await invited(user);
      const room = `/rooms/${enc(roomId)}`;
      const ways = async () => [
        await user.call('POST', `${room}/leave`, {}),
        await user.call('POST', `${room}/kick`, { user_id: user.id }),
        await user.call('PUT', `${room}/state/m.room.member/${user.id}`, { membership: 'leave' }),
      ];
      for (const answer of await ways()) assert.deepEqual(codeOf(answer), [403, code], answer.raw);
      assert.equal(await invited(user), roomId);
      await user.join(roomId);
      for (const answer of await ways()) assert.deepEqual(codeOf(answer), [403, code], answer.raw);
      const { joined } = await user.do('GET', `${room}/joined_members`);
      assert.ok(user.id in (joined as object));
      const ordinaryRoom = await user.createRoom();
      await user.leave(ordinaryRoom);
    });

    it('invites users to notice rooms even if they block all invites', async () => {
      const user = await newcomer();
      await user.do('PUT', `/user/${user.id}/account_data/m.invite_permission_config`, {
        default_action: 'block',
      });
      await notify(user, 'important');
      await invited(user);
    });

    it('reserves the name of the notices user, and leaves that user out of the user directory', async () => {
      const auth = { type: 'm.login.dummy' };
      const body = { username: 'Notices', password: 'correct horse', auth };
      const registered = await server.api('POST', '/_matrix/client/v3/register', { body });
      assert.deepEqual(codeOf(registered), [400, 'M_EXCLUSIVE']);
      const available = await server.api('GET', '/_matrix/client/v3/register/available', {
        query: { username: 'notices' },
      });
      assert.deepEqual(codeOf(available), [400, 'M_EXCLUSIVE']);
      const identifier = { type: 'm.id.user', user: 'notices' };
      const login = await server.api('POST', '/_matrix/client/v3/login', {
        body: { type: 'm.login.password', identifier, password: 'correct horse' },
      });
      assert.deepEqual(codeOf(login), [403, 'M_FORBIDDEN']);
      const { user } = await reader();
      const { results } = await user.do('POST', '/user_directory/search', { search_term: 'notices' });
      assert.deepEqual(results, []);
      const change = await admin.call('PUT', `/profile/${notices}/displayname`, { displayname: 'x' });
      assert.equal(change.status, 404);
    });

    it('sends notices of administrators to local users only', async () => {
      const user = await newcomer();
      const body = { user_id: user.id, content: text('x') };
      const request = async (sent: object, who = admin) => codeOf(await who.request('POST', path, sent));
      assert.deepEqual(await request(body, user), [403, 'M_FORBIDDEN']);
      assert.deepEqual(codeOf(await server.api('POST', path, { body })), [401, 'M_MISSING_TOKEN']);
      assert.deepEqual(await request({ ...body, user_id: '@nobody:test' }), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await request({ ...body, user_id: '@no\0body:test' }), [400, 'M_INVALID_PARAM']);
      assert.deepEqual(await request({ ...body, user_id: notices }), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await request({ ...body, user_id: '@ann:elsewhere' }), [400, 'M_UNKNOWN']);
      assert.deepEqual(await request({ ...body, user_id: 'ann' }), [400, 'M_INVALID_PARAM']);
      assert.deepEqual(await request({ user_id: user.id }), [400, 'M_BAD_JSON']);
      assert.deepEqual(await request({ ...body, content: 'x' }), [400, 'M_BAD_JSON']);
      for (const content of [{}, { body: 'x' }, { msgtype: 'm.text' }, { msgtype: 'm.text', body: 1 }]) {
        assert.deepEqual(await request({ ...body, content }), [400, 'M_BAD_JSON'], JSON.stringify(content));
      }
      assert.deepEqual(await request({ ...body, type: 'a\0b' }), [400, 'M_BAD_JSON']);
      const huge = { ...body, content: text('x'.repeat(70_000)) };
      assert.deepEqual(await request(huge), [413, 'M_TOO_LARGE']);
      const documented = '/_server/admin/v1/send_server_notice/%00';
      const odd = await admin.request('PUT', documented, body);
      assert.deepEqual(codeOf(odd), [400, 'M_INVALID_PARAM']);
    });
  });
});
