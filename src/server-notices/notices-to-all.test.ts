import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { sql } from 'kysely';
import { forSelectedDatabases, type OpenDatabase } from '../../test/support/databases/databases.ts';
import { sectionDefaults } from '../../test/support/inputs/section-defaults.ts';
import { RoomsUnderTest } from '../../test/support/rooms/rooms.ts';
import { startTestServer, type TestServer } from '../../test/support/servers/server.ts';
import { registerAdmin } from '../../test/support/users/register-admin.ts';
import { enc, TestClient } from '../../test/support/users/test-client.ts';
import { AccountData, accountDataMigrations, Tags } from '../account-data/index.ts';
import { type AccountTables, accountMigrations } from '../accounts/index.ts';
import { Jobs, jobMigrations } from '../kernel/jobs/index.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { systemRandomness } from '../kernel/randomness.ts';
import { forbidden } from '../protocol/index.ts';
import type { RoomTables } from '../room-engine/index.ts';
import { serverNoticesSection } from './config.ts';
import { serverNoticeMigrations } from './migrations.ts';
import { NoticeRooms } from './notice-rooms.ts';
import { NoticesToAll } from './notices-to-all.ts';
import { noticesUser } from './notices-user.ts';
import { ServerNotices } from './server-notices.ts';

const path = '/v1/send_server_notice_to_all';

type Administrator = Awaited<ReturnType<typeof administratorOf>>;

/** Registers an administrator. @returns functions that send requests to the admin API */
async function administratorOf(server: TestServer) {
  const user = await registerAdmin(server);
  type Query = Record<string, string>;
  const ask = (method: string, path: string, body?: unknown, query: Query = {}) =>
    user.ask(method, `/_synapse/admin${path}`, body, query);
  return {
    user,
    async do(...request: Parameters<typeof ask>) {
      const answer = await ask(...request);
      assert.equal(answer.status, 200, answer.raw);
      return answer.body;
    },
    async refused(...request: Parameters<typeof ask>) {
      const { status, body } = await ask(...request);
      return [status, body['errcode']];
    },
  };
}

const content = (body: string) => ({ msgtype: 'm.text', body });

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('send_server_notice_to_all', () => {
    let server: TestServer;
    let admin: Administrator;
    const users: TestClient[] = [];
    before(async () => {
      server = await startTestServer({
        database: kind,
        config: {
          accounts: { allow_guest_access: true },
          serverNotices: { server_notices: { system_mxid_localpart: 'notices' } },
        },
      });
      admin = await administratorOf(server);
      users.push(admin.user);
      for (let index = 0; index < 24; index += 1)
        users.push(await TestClient.register(server, `user${index}`));
    });
    after(() => server.stop());

    const send = async (body: string) =>
      String((await admin.do('POST', path, { content: content(body) }))['notice_id']);
    const status = (noticeId: string) => admin.do('GET', `${path}/${noticeId}`);
    const finished = async (noticeId: string) => {
      for (;;) {
        const found = await status(noticeId);
        if (found['status'] === 'complete' || found['status'] === 'failed') return found;
        await setTimeout(20);
      }
    };
    /** Returns the messages in the only notice room of a user. */
    const noticesOf = async (user: TestClient) => {
      const { invite = {}, join = {} } = (await user.sync()).rooms ?? {};
      const [roomId, ...others] = [...Object.keys(invite), ...Object.keys(join)];
      assert.deepEqual(others, []);
      if (roomId === undefined) return [];
      await user.join(roomId);
      const query = { dir: 'f', limit: 100 };
      const { chunk } = await user.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, query);
      const events = chunk as { type: string; content: { body?: string } }[];
      return events.filter(({ type }) => type === 'm.room.message').map((event) => event.content.body);
    };
    const all = { status: 'complete', total: 25, sent: 25, failed: 0, failed_users: {} };

    it('sends a notice once to each active user, except guests, also when the server restarts meanwhile', async () => {
      const guest = await server.api('POST', '/_matrix/client/v3/register', {
        query: { kind: 'guest' },
        body: {},
      });
      assert.equal(guest.status, 200, guest.raw);
      const leaver = await TestClient.register(server, 'leaver');
      await admin.do('POST', `/v1/deactivate/${leaver.id}`, {});
      const noticeId = await send('Maintenance at noon');
      await server.restart();
      assert.deepEqual(await finished(noticeId), all);
      for (const user of users) assert.deepEqual(await noticesOf(user), ['Maintenance at noon'], user.id);
    });

    it('sends the next notice to the same rooms, and shows its job with its progress', async () => {
      const noticeId = await send('It is done');
      assert.deepEqual(await finished(noticeId), all);
      for (const user of users) assert.equal((await noticesOf(user)).at(-1), 'It is done');
      const { scheduled_tasks: tasks } = await admin.do('GET', '/v1/scheduled_tasks', undefined, {
        action_name: 'server-notices/send-to-all',
        resource_id: noticeId,
      });
      const [task] = tasks as Record<string, unknown>[];
      assert.deepEqual(task?.['progress'], { done: 25, total: 25 });
      assert.doesNotMatch(JSON.stringify(tasks), /It is done/);
    });

    it('is in the audit log, without the text', async () => {
      const query = { operation: 'sendServerNoticeToAll' };
      const { entries } = await admin.do('GET', '/v1/audit_log', undefined, query);
      assert.deepEqual(
        (entries as Record<string, unknown>[]).map((entry) => [entry['admin'], entry['status']]),
        [
          ['@admin:test', 200],
          ['@admin:test', 200],
        ],
      );
      assert.doesNotMatch(JSON.stringify(entries), /It is done/);
    });

    it('refuses users who are not administrators, invalid notices and unknown ids, and sends nothing', async () => {
      const refused = (body: unknown) => admin.refused('POST', path, body);
      const asUser = await users[1]!.ask('POST', `/_synapse/admin${path}`, { content: content('x') });
      assert.deepEqual([asUser.status, asUser.body['errcode']], [403, 'M_FORBIDDEN']);
      const invalid = [
        {},
        { content: 'x' },
        { content: {} },
        { content: { msgtype: 'm.text' } },
        { type: '', content: content('x') },
        { type: 'a\0b', content: content('x') },
        { content: { ...content('x'), number: 0.5 } },
      ];
      for (const body of invalid)
        assert.deepEqual(await refused(body), [400, 'M_BAD_JSON'], JSON.stringify(body));
      for (const type of ['m.room.member', 'm.room.redaction', 'x'.repeat(256)])
        assert.deepEqual(await refused({ type, content: {} }), [400, 'M_INVALID_PARAM'], type);
      assert.deepEqual(await refused({ content: content('x'.repeat(60_000)) }), [413, 'M_TOO_LARGE']);
      for (const id of ['unknown', '%00'])
        assert.deepEqual(await admin.refused('GET', `${path}/${id}`), [404, 'M_NOT_FOUND']);
      assert.deepEqual((await noticesOf(users[1]!)).length, 2);
      const { scheduled_tasks: tasks } = await admin.do('GET', '/v1/scheduled_tasks', undefined, {
        action_name: 'server-notices/send-to-all',
      });
      assert.equal((tasks as unknown[]).length, 2);
    });
  });

  it('send_server_notice_to_all answers 400 M_UNKNOWN where notices are turned off', async () => {
    const server = await startTestServer({ database: kind });
    try {
      const admin = await administratorOf(server);
      const refused = await admin.refused('POST', path, { content: content('x') });
      assert.deepEqual(refused, [400, 'M_UNKNOWN']);
    } finally {
      await server.stop();
    }
  });
});

const configuration = { server_notices: { system_mxid_localpart: 'notices' } };
const options = sectionDefaults(serverNoticesSection, configuration).server_notices!;
const sender = noticesUser(options, 'test');
const migrations = [
  ...accountDataMigrations,
  ...accountMigrations,
  ...jobMigrations,
  ...serverNoticeMigrations,
];
const userIds = Array.from({ length: 25 }, (_, index) => `@user${String(index).padStart(2, '0')}:test`);

type Send = ServerNotices['send'];

/** Opens the notices to all users as a process would. @param wrap changes how a notice is sent to one user */
function openNoticesToAll(fixture: RoomsUnderTest, wrap: (send: Send, jobs: Jobs) => Send = (send) => send) {
  const { database, streams, rooms, clock } = fixture;
  const tags = new Tags(new AccountData({ database, streams }));
  const noticeRooms = new NoticeRooms({ database, rooms, tags, user: sender, options, roomVersion: '10' });
  const sending = { user: sender, noticeRooms };
  const notices = new ServerNotices({ rooms, serverName: 'test', userExists: async () => true, sending });
  const jobs = new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true });
  const asked: string[] = [];
  const wrapped = wrap((...parameters) => notices.send(...parameters), jobs);
  const send: Send = (userId, ...rest) => {
    asked.push(userId);
    return wrapped(userId, ...rest);
  };
  const check = (type: string) => notices.check(type);
  const toAll = new NoticesToAll({
    ...fixture,
    clock,
    randomness: systemRandomness,
    jobs,
    notices: { send, check },
  });
  return { toAll, jobs, asked };
}

async function openWithUsers(open: OpenDatabase): Promise<RoomsUnderTest> {
  const fixture = await RoomsUnderTest.open(open, migrations);
  await fixture.database.transaction<AccountTables, void>(async (writer) => {
    for (const userId of userIds) {
      await writer
        .insertInto('users')
        .values({
          ...{ user_id: userId, folded_id: userId, created_at: 1, password_hash: null, user_type: null },
          ...{ appservice_id: null, is_guest: 0, is_admin: 0, is_deactivated: 0, is_erased: 0 },
          ...{ is_locked: 0, is_suspended: 0 },
        })
        .execute();
    }
  });
  return fixture;
}

/** Counts the stored notices, and the rooms in which they are. */
async function storedNotices({ database }: RoomsUnderTest, body: string) {
  const { events, rooms } = await database
    .reader<RoomTables>()
    .selectFrom('events')
    .select([sql<number>`count(*)`.as('events'), sql<number>`count(distinct room_nid)`.as('rooms')])
    .where(sql<boolean>`json like ${`%${body}%`}`)
    .executeTakeFirstOrThrow();
  return [Number(events), Number(rooms)];
}

const complete = { status: 'complete', error: undefined, total: 25, sent: 25, failed: 0, failedUsers: {} };

forSelectedDatabases(import.meta.url, (open) => {
  describe('NoticesToAll', () => {
    it('sends no second notice to users who got it before the process crashed', async () => {
      const first = await openWithUsers(open);
      const crashing = openNoticesToAll(first, (send) => async (userId, ...rest) => {
        await send(userId, ...rest);
        if (userId === userIds[4]) throw new Error('crash after the notice, before the progress is stored');
        return '$sent';
      });
      await crashing.jobs.start();
      const noticeId = await crashing.toAll.schedule('m.room.message', content('hello all'));
      await crashing.jobs.settled();
      assert.deepEqual(crashing.asked, userIds.slice(0, 5));
      assert.equal((await crashing.toAll.status(noticeId))?.status, 'active');
      await crashing.jobs.stop();
      const second = await first.restart(open);
      second.clock.advance(60_000);
      const { toAll, jobs, asked } = openNoticesToAll(second);
      await jobs.start();
      await jobs.settled();
      assert.deepEqual(await toAll.status(noticeId), complete);
      assert.deepEqual(asked, userIds);
      assert.deepEqual(await storedNotices(second, 'hello all'), [25, 25]);
      await jobs.stop();
    });

    it('continues after the last user when the server is stopped and started', async () => {
      const first = await openWithUsers(open);
      let stopped: Promise<void> | undefined;
      const stopping = openNoticesToAll(first, (send, jobs) => (userId, ...rest) => {
        if (userId === userIds[21]) stopped = jobs.stop();
        return send(userId, ...rest);
      });
      await stopping.jobs.start();
      const noticeId = await stopping.toAll.schedule('m.room.message', content('hello all'));
      await stopping.jobs.settled();
      await stopped;
      assert.deepEqual(stopping.asked, userIds.slice(0, 22));
      assert.equal((await stopping.toAll.status(noticeId))?.sent, 22);
      const second = await first.restart(open);
      const { toAll, jobs, asked } = openNoticesToAll(second);
      await jobs.start();
      await jobs.settled();
      assert.deepEqual(asked, userIds.slice(22));
      assert.deepEqual(await toAll.status(noticeId), complete);
      assert.deepEqual(await storedNotices(second, 'hello all'), [25, 25]);
      await jobs.stop();
    });

    it('counts users who cannot get the notice, and sends it to the others; users who register later do not get it', async () => {
      const fixture = await openWithUsers(open);
      const { toAll, jobs, asked } = openNoticesToAll(fixture, (send) => async (userId, ...rest) => {
        if (userId === userIds[1]) throw forbidden('not this user');
        if (userId === userIds[2])
          await fixture.database.transaction<AccountTables, unknown>((writer) =>
            writer
              .updateTable('users')
              .set({ created_at: fixture.clock.now() + 1 })
              .where('user_id', '=', userIds[24]!)
              .execute(),
          );
        return send(userId, ...rest);
      });
      await jobs.start();
      const noticeId = await toAll.schedule('m.room.message', content('hello all'));
      await jobs.settled();
      const failedUsers = { [userIds[1]!]: 'not this user' };
      assert.deepEqual(await toAll.status(noticeId), { ...complete, sent: 23, failed: 1, failedUsers });
      assert.equal(asked.includes(userIds[24]!), false);
      await jobs.stop();
    });
  });
});
