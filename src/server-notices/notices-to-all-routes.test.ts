import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { eventually } from '../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { ApplicationService } from '../../test/support/other-servers/application-service.ts';
import { startTestServer, type TestServer } from '../../test/support/servers/server.ts';
import { registerAdmin } from '../../test/support/users/register-admin.ts';
import { enc, TestClient } from '../../test/support/users/test-client.ts';
import { ServerNotices } from './server-notices.ts';

const path = '/v1/send_server_notice_to_all';

type Administrator = Awaited<ReturnType<typeof administratorOf>>;

/** Registers an administrator. @returns functions that send requests to the admin API */
async function administratorOf(server: TestServer) {
  const user = await registerAdmin(server);
  type Query = Record<string, string>;
  const sendRequest = (method: string, path: string, body?: unknown, query: Query = {}) =>
    user.request(method, `/_synapse/admin${path}`, body, query);
  return {
    user,
    async do(...request: Parameters<typeof sendRequest>) {
      const answer = await sendRequest(...request);
      assert.equal(answer.status, 200, answer.raw);
      return answer.body;
    },
    async statusAndErrcode(...request: Parameters<typeof sendRequest>) {
      const { status, body } = await sendRequest(...request);
      return [status, body['errcode']];
    },
  };
}

const content = (body: string) => ({ msgtype: 'm.text', body });

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('send_server_notice_to_all', () => {
    let server: TestServer;
    let admin: Administrator;
    let bridge: ApplicationService;
    const users: TestClient[] = [];
    before(async () => {
      bridge = await ApplicationService.start('bridge');
      server = await startTestServer({
        database: kind,
        config: {
          accounts: { allow_guest_access: true },
          appservices: { app_service_config_files: [bridge.file] },
          serverNotices: { server_notices: { system_mxid_localpart: 'notices' } },
        },
      });
      admin = await administratorOf(server);
      users.push(admin.user);
      for (let index = 0; index < 24; index += 1)
        users.push(await TestClient.register(server, `user${index}`));
    });
    after(async () => {
      await server.stop();
      await bridge.stop();
    });

    const send = async (body: string, more: object = {}) =>
      String((await admin.do('POST', path, { content: content(body), ...more }))['notice_id']);
    const status = (noticeId: string) => admin.do('GET', `${path}/${noticeId}`);
    const untilFinished = (noticeId: string) =>
      eventually('the end of the notice', async () => {
        const found = await status(noticeId);
        return !['scheduled', 'active'].includes(String(found['status'])) && found;
      });
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
    const sentToAll = { status: 'complete', total: 25, sent: 25, failed: 0, failed_users: {} };

    it('sends a notice once to each user, also when the server restarts meanwhile, except guests, deactivated users and users of application services', async () => {
      const guest = await server.api('POST', '/_matrix/client/v3/register', {
        query: { kind: 'guest' },
        body: {},
      });
      assert.equal(guest.status, 200, guest.raw);
      const ghost = await server.api('POST', '/_matrix/client/v3/register', {
        token: 'as-token-of-bridge',
        body: { type: 'm.login.application_service', username: 'bridge_ghost', inhibit_login: true },
      });
      assert.equal(ghost.status, 200, ghost.raw);
      const leaver = await TestClient.register(server, 'leaver');
      await admin.do('POST', `/v1/deactivate/${leaver.id}`, {});
      const noticeId = await send('Maintenance at noon');
      await server.restart();
      assert.deepEqual(await untilFinished(noticeId), sentToAll);
      for (const user of users) assert.deepEqual(await noticesOf(user), ['Maintenance at noon'], user.id);
      for (const userId of [guest.body['user_id'], ghost.body['user_id'], leaver.id]) {
        const rooms = await admin.do('GET', `/v1/users/${userId}/memberships`);
        assert.deepEqual(rooms, { memberships: {} }, String(userId));
      }
    });

    it('sends the next notice to the same rooms, and shows its job with its progress', async () => {
      const noticeId = await send('It is done');
      assert.deepEqual(await untilFinished(noticeId), sentToAll);
      for (const user of users) assert.equal((await noticesOf(user)).at(-1), 'It is done');
      const { scheduled_tasks: tasks } = await admin.do('GET', '/v1/scheduled_tasks', undefined, {
        action_name: 'server-notices/send-to-all',
        resource_id: noticeId,
      });
      const [task] = tasks as Record<string, unknown>[];
      assert.deepEqual(task?.['progress'], { done: 25, total: 25 });
      assert.doesNotMatch(JSON.stringify(tasks), /It is done/);
    });

    it('adds an entry to the audit log for each notice to all users, without the text of the notice', async () => {
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
      const answerTo = (body: unknown) => admin.statusAndErrcode('POST', path, body);
      const asUser = await users[1]!.request('POST', `/_synapse/admin${path}`, { content: content('x') });
      assert.deepEqual([asUser.status, asUser.body['errcode']], [403, 'M_FORBIDDEN']);
      const invalid = [
        {},
        { content: 'x' },
        { content: {} },
        { content: { msgtype: 'm.text' } },
        { type: '', content: content('x') },
        { type: 'a\0b', content: content('x') },
        { type: 'a\ud800', content: content('x') },
        { content: { ...content('x'), number: 0.5 } },
        { content: content('a\ud800') },
        { content: content('x'), state_key: '' },
        { content: content('x'), state_key: 'x'.repeat(256) },
        { content: content('x'), txn_id: '' },
        { content: content('x'), txn_id: 'x'.repeat(256) },
      ];
      for (const body of invalid)
        assert.deepEqual(await answerTo(body), [400, 'M_BAD_JSON'], JSON.stringify(body));
      const relation = { rel_type: 'm.annotation', event_id: '$parent', key: 'x' };
      const unacceptable = [
        { type: 'm.room.member', content: {} },
        { type: 'm.room.redaction', content: {} },
        { type: 'm.room.create', content: {} },
        { type: 'm.room.power_levels', content: { users_default: 'x' } },
        { content: { ...content('x'), 'm.relates_to': relation } },
        { content: content('x'), txn_id: 'a\0b' },
      ];
      for (const body of unacceptable)
        assert.deepEqual(await answerTo(body), [400, 'M_INVALID_PARAM'], JSON.stringify(body));
      const tooLarge = [
        { type: 'x'.repeat(256), content: {} },
        { type: 'é'.repeat(128), content: {} },
        { content: content('x'.repeat(60_000)) },
      ];
      for (const body of tooLarge) assert.deepEqual(await answerTo(body), [413, 'M_TOO_LARGE']);
      for (const method of ['GET', 'DELETE'])
        for (const id of ['unknown', '%00'])
          assert.deepEqual(await admin.statusAndErrcode(method, `${path}/${id}`), [404, 'M_NOT_FOUND']);
      assert.deepEqual((await noticesOf(users[1]!)).length, 2);
      const { scheduled_tasks: tasks } = await admin.do('GET', '/v1/scheduled_tasks', undefined, {
        action_name: 'server-notices/send-to-all',
      });
      assert.equal((tasks as unknown[]).length, 2);
    });

    it('returns the id of the first notice for a repeated transaction id, and sends no second notice', async () => {
      const once = { state_key: null, txn_id: 'maintenance' };
      const [first, second] = await Promise.all([send('Only once', once), send('Only once', once)]);
      await untilFinished(first);
      await server.restart();
      const ids = [first, second, await send('Only once', once)];
      assert.deepEqual(ids, Array(3).fill(first));
      assert.deepEqual(await untilFinished(first), sentToAll);
      const received = await noticesOf(users[3]!);
      assert.equal(received.filter((body) => body === 'Only once').length, 1);
      assert.notEqual(await send('Only once more', { txn_id: 'another' }), first);
    });

    it('answers 400 M_UNKNOWN to requests to cancel a notice that is complete', async () => {
      const noticeId = await send('Complete');
      await untilFinished(noticeId);
      assert.deepEqual(await admin.statusAndErrcode('DELETE', `${path}/${noticeId}`), [400, 'M_UNKNOWN']);
      assert.equal((await status(noticeId))['status'], 'complete');
    });
  });

  it('DELETE send_server_notice_to_all/{noticeId} cancels a notice while it is sent, and a repeated request with its transaction id does not send it again', async () => {
    const server = await startTestServer({
      database: kind,
      config: { serverNotices: { server_notices: { system_mxid_localpart: 'notices' } } },
    });
    const { send } = ServerNotices.prototype;
    const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    ServerNotices.prototype.send = async function (...parameters) {
      begun.resolve();
      await released.promise;
      return send.apply(this, parameters);
    };
    try {
      const admin = await administratorOf(server);
      const user = await TestClient.register(server, 'user');
      const notice = { content: content('wrong text'), txn_id: '1' };
      const { notice_id: noticeId } = await admin.do('POST', path, notice);
      await begun.promise;
      assert.deepEqual(await admin.do('DELETE', `${path}/${noticeId}`), {});
      released.resolve();
      const atEnd = { status: 'cancelled', total: 2, sent: 1, failed: 0, failed_users: {} };
      await eventually('the notice to the first user', async () =>
        isDeepStrictEqual(await admin.do('GET', `${path}/${noticeId}`), atEnd),
      );
      assert.deepEqual(await admin.do('POST', path, notice), { notice_id: noticeId });
      assert.deepEqual(await admin.do('DELETE', `${path}/${noticeId}`), {});
      assert.deepEqual(await admin.do('GET', `${path}/${noticeId}`), atEnd);
      assert.equal((await user.sync()).rooms?.invite, undefined);
      const query = { action_name: 'server-notices/send-to-all', status: 'cancelled' };
      const { scheduled_tasks: tasks } = await admin.do('GET', '/v1/scheduled_tasks', undefined, query);
      assert.deepEqual(
        (tasks as Record<string, unknown>[]).map((task) => [task['resource_id'], task['status']]),
        [[noticeId, 'cancelled']],
      );
    } finally {
      ServerNotices.prototype.send = send;
      released.resolve();
      await server.stop();
    }
  });

  it('send_server_notice_to_all answers 400 M_UNKNOWN where notices are turned off', async () => {
    const server = await startTestServer({ database: kind });
    try {
      const admin = await administratorOf(server);
      const answer = await admin.statusAndErrcode('POST', path, { content: content('x') });
      assert.deepEqual(answer, [400, 'M_UNKNOWN']);
    } finally {
      await server.stop();
    }
  });
});
