import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openContents } from '../../test/support/databases/database-contents.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { until } from '../../test/support/other-servers/federation-sender.ts';
import { startTestServer, type TestServer } from '../../test/support/servers/server.ts';
import { registerAdmin } from '../../test/support/users/register-admin.ts';
import { enc, TestClient } from '../../test/support/users/test-client.ts';
import { createLogger } from '../kernel/observability/index.ts';
import type { NoticeOptions } from './config.ts';

const path = '/_synapse/admin/v1/send_server_notice';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('NoticeRooms after changes of the configuration', () => {
    let server: TestServer;
    let admin: TestClient;
    let options: (Partial<NoticeOptions> & Pick<NoticeOptions, 'system_mxid_localpart'>) | null = null;
    const warnings: string[] = [];
    const roomVersion = kind === 'sqlite' ? ('12' as const) : ('10' as const);
    before(async () => {
      const config = {
        rooms: { default_room_version: roomVersion, allow_per_room_profiles: false },
        directory: { user_directory: { search_all_users: true } },
        get serverNotices() {
          return { server_notices: options };
        },
      };
      const log = createLogger({ level: 'warn', destination: { write: (line) => void warnings.push(line) } });
      server = await startTestServer({ database: kind, config, log });
      admin = await registerAdmin(server);
    });
    after(() => server.stop());

    const change = async (changed: Partial<NoticeOptions> | null) => {
      options = changed && { system_mxid_localpart: 'notices', ...changed };
      await server.restart();
    };
    const request = (user: TestClient, body = 'read this') =>
      admin.request('POST', path, { user_id: user.id, content: { msgtype: 'm.text', body } });
    const notify = async (user: TestClient) => {
      const answer = await request(user);
      assert.equal(answer.status, 200, answer.raw);
    };
    const roomsOf = async (user: TestClient, membership: 'join' | 'invite' | 'leave' = 'join') =>
      Object.keys(
        (await user.sync(undefined, { filter: { room: { include_leave: true } } })).rooms?.[membership] ?? {},
      );
    const onlyRoom = async (user: TestClient, membership: 'join' | 'invite' = 'join') => {
      const rooms = await roomsOf(user, membership);
      assert.equal(rooms.length, 1);
      return rooms[0]!;
    };
    const contents = async (user: TestClient, roomId: string) => {
      const state = await user.call('GET', `/rooms/${enc(roomId)}/state`);
      const events = state.body as unknown as {
        type: string;
        state_key: string;
        content: Record<string, unknown>;
      }[];
      const of = (type: string, key = '') =>
        events.find(({ type: other, state_key: otherKey }) => type === other && key === otherKey)?.content;
      const { displayname, avatar_url } = of('m.room.member', '@notices:test') ?? {};
      return {
        name: of('m.room.name')?.['name'],
        topic: of('m.room.topic')?.['topic'],
        avatar: of('m.room.avatar')?.['url'],
        sender: [displayname, avatar_url],
        events: events.length,
      };
    };
    /** Reads the membership of a user in a room, and whether it is forgotten, from the database. */
    const membershipOf = async (userId: string, roomId: string) => {
      const tables = await openContents(server.databaseOptions);
      try {
        const room = (await tables.rows('rooms')).find(({ room_id: id }) => id === roomId);
        const row = (await tables.rows('memberships')).find(
          (one) => one['user_id'] === userId && one['room_nid'] === room?.['room_nid'],
        );
        return row && [row['membership'], Number(row['forgotten'])];
      } finally {
        await tables.close();
      }
    };

    it('makes no notice room while notices are disabled', async () => {
      const user = await TestClient.register(server, 'early');
      const { status, body } = await request(user);
      assert.deepEqual([status, body['errcode']], [400, 'M_UNKNOWN']);
      assert.equal((await user.call('GET', '/profile/@notices:test')).status, 404);
    });

    it('updates name, topic and avatar with the next notice after a change of the configuration [option: server_notices.room_name, server_notices.room_topic, server_notices.room_avatar_url, server_notices.system_mxid_display_name, server_notices.system_mxid_avatar_url, server_notices.auto_join]', async () => {
      await change({
        system_mxid_avatar_url: 'mxc://test/sender',
        room_topic: 'What you should know',
        room_avatar_url: 'mxc://test/room',
        auto_join: true,
      });
      const user = await TestClient.register(server, 'anna');
      await notify(user);
      const roomId = await onlyRoom(user);
      const first = await contents(user, roomId);
      const { events: count } = first;
      assert.deepEqual(first, {
        name: 'Server Notices',
        topic: 'What you should know',
        avatar: 'mxc://test/room',
        sender: ['Notices', 'mxc://test/sender'],
        events: count,
      });
      await notify(user);
      const since = (await user.sync()).next_batch;
      await notify(user);
      const { timeline } = (await user.sync(since)).rooms!.join![roomId]!;
      assert.deepEqual(
        timeline.events.map(({ type }) => type),
        ['m.room.message'],
        'unchanged state is not sent again',
      );
      await change({
        system_mxid_display_name: 'The office',
        room_name: 'News',
        room_topic: '',
        room_avatar_url: '',
        auto_join: true,
      });
      assert.deepEqual(await contents(user, roomId), first);
      await notify(user);
      const name = 'News';
      const topic = '';
      const avatar = undefined;
      const renewed = { name, topic, avatar, sender: ['The office', undefined], events: count };
      assert.deepEqual(await contents(user, roomId), renewed);
      assert.equal((await user.do('GET', '/profile/@notices:test'))['displayname'], 'The office');
      await change({ system_mxid_display_name: 'The office', room_name: 'News' });
      await notify(user);
      assert.deepEqual(await contents(user, roomId), renewed, 'topic and avatar are left alone');
      const other = await TestClient.register(server, 'ben');
      await notify(other);
      await other.join(await onlyRoom(other, 'invite'));
      const plain = await contents(other, await onlyRoom(other));
      assert.deepEqual([plain.topic, plain.avatar, plain.events], [undefined, undefined, count - 2]);
      assert.equal(await onlyRoom(user), roomId);
    });

    it('joins invited users to their notice room once auto_join is enabled', async () => {
      await change({});
      const user = await TestClient.register(server, 'carl');
      await notify(user);
      const roomId = await onlyRoom(user, 'invite');
      await change({ auto_join: true });
      await notify(user);
      assert.equal(await onlyRoom(user), roomId);
    });

    it('makes another notice room for a user who left the first while notices were disabled', async () => {
      await change({ auto_join: true });
      const user = await TestClient.register(server, 'dora');
      await notify(user);
      const roomId = await onlyRoom(user);
      await change(null);
      await user.leave(roomId);
      await user.membership('forget', roomId);
      await change({ auto_join: true });
      await notify(user);
      assert.notEqual(await onlyRoom(user), roomId);
      assert.deepEqual(await membershipOf('@notices:test', roomId), ['leave', 1]);
    });

    it('makes other notice rooms when another user is configured to send notices', async () => {
      await change({ auto_join: true });
      const user = await TestClient.register(server, 'emil');
      await notify(user);
      const roomId = await onlyRoom(user);
      await change({ system_mxid_localpart: 'office', auto_join: true });
      await notify(user);
      assert.equal((await roomsOf(user)).length, 2);
      assert.deepEqual(await membershipOf('@notices:test', roomId), ['leave', 1]);
      await user.leave(roomId);
      const noticeRoom = await onlyRoom(user);
      const refused = await user.call('POST', `/rooms/${enc(noticeRoom)}/leave`, {});
      assert.equal(refused.body['errcode'], 'M_CANNOT_LEAVE_SERVER_NOTICE_ROOM');
    });

    it('sends notices as the configured user, though an account of that name exists', async () => {
      const earlierAccount = await TestClient.register(server, 'gazette');
      const search = async (user: TestClient) =>
        (await user.do('POST', '/user_directory/search', { search_term: 'gazette' }))['results'] as unknown[];
      const user = await TestClient.register(server, 'gustav');
      await until(async () => (await search(user)).length === 1);
      await change({
        system_mxid_localpart: 'gazette',
        system_mxid_display_name: 'The gazette',
        auto_join: true,
      });
      const warned = warnings.some((line) => line.includes('@gazette:test'));
      assert.ok(warned, 'no warning in the log');
      await notify(user);
      const roomId = await onlyRoom(user);
      const { joined } = await user.do('GET', `/rooms/${enc(roomId)}/joined_members`);
      assert.deepEqual((joined as Record<string, unknown>)[earlierAccount.id], {
        display_name: 'The gazette',
        avatar_url: null,
      });
      assert.deepEqual(await search(user), []);
      assert.equal((await request(earlierAccount)).status, 404);
    });

    it('closes the notice room of a deactivated user', async () => {
      await change({ auto_join: true });
      const user = await TestClient.register(server, 'frida');
      await notify(user);
      const roomId = await onlyRoom(user);
      const auth = { type: 'm.login.password', user: user.id, password: 'correct horse' };
      await change(null);
      await user.do('POST', '/account/deactivate', { auth });
      for (const userId of [user.id, '@notices:test']) {
        await until(async () => String(await membershipOf(userId, roomId)) === 'leave,1');
      }
      await change({});
      assert.equal((await request(user)).status, 404);
    });
  });
});
