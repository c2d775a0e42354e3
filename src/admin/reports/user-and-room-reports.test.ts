import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

interface UserReportPage {
  readonly user_reports: readonly { readonly id: number; readonly [field: string]: unknown }[];
  readonly total: number;
  readonly next_token?: number;
}

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('user_reports and room_reports of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    before(async () => {
      server = await startTestServer({ database: kind });
      admin = await Administration.open(server);
      const anna = await TestClient.register(server, 'anna');
      const ben = await TestClient.register(server, 'ben');
      const report = (from: TestClient, userId: string, reason: string) =>
        from.do('POST', `/users/${enc(userId)}/report`, { reason });
      await report(anna, ben.id, 'one');
      await report(anna, '@far:elsewhere.example', 'two');
      await report(ben, anna.id, 'three');
      const roomId = await anna.createRoom({ name: 'Meadow' });
      await anna.do('POST', `/rooms/${enc(roomId)}/report`, { reason: 'a room' });
    });
    after(() => server.stop());

    it('lists, shows and deletes reports of rooms', async () => {
      const list = async (query: Record<string, string> = {}) =>
        (await admin.do('GET', '/v1/room_reports', undefined, query)) as unknown as {
          room_reports: { id: number; received_ts: number; room_id: string }[];
          total: number;
        };
      const { room_reports: found, total } = await list();
      const { id, received_ts, room_id, ...rest } = found[0]!;
      assert.deepEqual(
        [total, rest],
        [1, { name: 'Meadow', canonical_alias: null, user_id: '@anna:test', reason: 'a room' }],
      );
      assert.deepEqual([received_ts > 1e12, room_id.startsWith('!')], [true, true]);
      assert.equal((await list({ room_id, user_id: '@anna:test' })).total, 1);
      assert.equal((await list({ room_id: '!other:test' })).total, 0);
      assert.deepEqual(await admin.do('GET', `/v1/room_reports/${id}`), found[0]);
      assert.deepEqual(await admin.refused('GET', `/v1/user_reports/${id}`), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.do('DELETE', `/v1/room_reports/${id}`), {});
      assert.deepEqual(await admin.refused('DELETE', `/v1/room_reports/${id}`), [404, 'M_NOT_FOUND']);
    });

    const list = async (query: Record<string, string | number> = {}) =>
      (await admin.do('GET', '/v1/user_reports', undefined, query)) as unknown as UserReportPage;
    const reasons = async (query: Record<string, string | number> = {}) =>
      (await list(query)).user_reports.map((report) => report['reason']);

    it('lists reports of users with all fields, newest first, with filters and pages', async () => {
      const { user_reports, total } = await list();
      const { id, received_ts, ...newest } = user_reports[0]!;
      assert.ok(id > 0 && Number(received_ts) > 1e12);
      assert.equal(total, 3);
      assert.deepEqual(newest, { target_user_id: '@anna:test', user_id: '@ben:test', reason: 'three' });
      assert.deepEqual(await reasons({ dir: 'f' }), ['one', 'two', 'three']);
      assert.deepEqual(await reasons({ user_id: '@anna:test' }), ['two', 'one']);
      assert.deepEqual(await reasons({ target_user_id: '@ben:test' }), ['one']);
      assert.equal((await list({ user_id: '@ben:test' })).total, 1);
      const first = await list({ limit: 2 });
      assert.equal(first.next_token, 2);
      assert.deepEqual(await reasons({ limit: 2, from: 2 }), ['one']);
    });

    it('continues after the last report of a page when reports are added or deleted between two requests', async () => {
      const cleo = await TestClient.register(server, 'cleo');
      const report = (reason: string) => cleo.do('POST', `/users/${enc('@ben:test')}/report`, { reason });
      for (const reason of ['a', 'b', 'c', 'd']) await report(reason);
      const query = { user_id: cleo.id, limit: 2 };
      const { user_reports: first, next_token: next } = await list(query);
      assert.deepEqual([first.map(({ reason }) => reason), next], [['d', 'c'], 2]);
      await report('e');
      assert.deepEqual(await reasons({ ...query, from: 2 }), ['b', 'a']);
      for (const { id } of first) await admin.do('DELETE', `/v1/user_reports/${id}`);
      assert.deepEqual(await reasons({ ...query, from: 2 }), ['b', 'a']);
      for (const { id } of (await list({ user_id: cleo.id })).user_reports)
        await admin.do('DELETE', `/v1/user_reports/${id}`);
    });

    it('shows a report of a user and deletes it, and responds 404 to its id in the paths of reports of events', async () => {
      const { id } = (await list({ dir: 'f' })).user_reports[0]!;
      const { received_ts: _, ...report } = await admin.do('GET', `/v1/user_reports/${id}`);
      assert.deepEqual(report, {
        id,
        target_user_id: '@ben:test',
        user_id: '@anna:test',
        reason: 'one',
      });
      assert.deepEqual(await admin.refused('GET', `/v1/event_reports/${id}`), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.refused('DELETE', `/v1/event_reports/${id}`), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.do('DELETE', `/v1/user_reports/${id}`), {});
      assert.deepEqual(await admin.refused('GET', `/v1/user_reports/${id}`), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.refused('DELETE', `/v1/user_reports/${id}`), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.refused('GET', '/v1/user_reports/x'), [400, 'M_INVALID_PARAM']);
    });
  });
});
