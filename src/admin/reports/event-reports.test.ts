import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';
import { readPagesWhileChanging } from '../test/read-pages.ts';

interface ReportList {
  readonly event_reports: readonly { readonly id: number; readonly [field: string]: unknown }[];
  readonly total: number;
  readonly next_token?: number;
}

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('event_reports of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let anna: TestClient;
    let ben: TestClient;
    let roomId: string;
    const eventIds: string[] = [];
    before(async () => {
      server = await startTestServer({ database: kind });
      admin = await Administration.open(server);
      anna = await TestClient.register(server, 'anna');
      ben = await TestClient.register(server, 'ben');
      roomId = await anna.createRoom({ preset: 'public_chat', name: 'Reported' });
      await ben.join(roomId);
      for (const body of ['one', 'two', 'three']) {
        const eventId = await anna.say(roomId, body);
        eventIds.push(eventId);
        await ben.do('POST', `/rooms/${enc(roomId)}/report/${enc(eventId)}`, { reason: body, score: -10 });
      }
      await ben.do('POST', `/rooms/${enc(roomId)}/report`, { reason: 'the whole room' });
    });
    after(() => server.stop());

    const list = async (query: Record<string, string | number> = {}) =>
      (await admin.do('GET', '/v1/event_reports', undefined, query)) as unknown as ReportList;
    const reasons = async (query: Record<string, string | number> = {}) =>
      (await list(query)).event_reports.map((report) => report['reason']);

    it('lists reports of events with all fields, newest first, with filters and pages', async () => {
      const { event_reports, total } = await list();
      const { id, received_ts, ...newest } = event_reports[0]!;
      assert.ok(id > 0 && Number(received_ts) > 1e12);
      assert.deepEqual(
        [total, newest],
        [
          3,
          {
            room_id: roomId,
            name: 'Reported',
            canonical_alias: null,
            event_id: eventIds[2],
            user_id: '@ben:test',
            sender: '@anna:test',
            reason: 'three',
            score: -10,
          },
        ],
      );
      assert.deepEqual(await reasons({ dir: 'f' }), ['one', 'two', 'three']);
      assert.deepEqual(await reasons({ room_id: roomId, user_id: '@ben:test' }), ['three', 'two', 'one']);
      assert.deepEqual(await reasons({ user_id: '@anna:test' }), []);
      assert.equal((await list({ event_sender_user_id: '@anna:test' })).total, 3);
      const first = await list({ limit: 2 });
      assert.equal(first.next_token, 2);
      await ben.do('POST', `/rooms/${enc(roomId)}/report/${enc(eventIds[0]!)}`, { reason: 'later' });
      assert.deepEqual(await reasons({ limit: 2, from: 2 }), ['one']);
    });

    it('lists each report once when other reports are added and deleted between two pages', async () => {
      const cleo = await TestClient.register(server, 'cleo');
      await cleo.join(roomId);
      const report = (reason: string) =>
        cleo.do('POST', `/rooms/${enc(roomId)}/report/${enc(eventIds[1]!)}`, { reason });
      for (const dir of ['b', 'f']) {
        for (const reason of ['a', 'passing', 'b', 'c', 'passing', 'd', 'e', 'f']) await report(reason);
        const keys = await readPagesWhileChanging(
          async (from = 0) => {
            const { event_reports: found, next_token: next } = await list({
              user_id: cleo.id,
              dir,
              limit: 2,
              from,
            });
            return { keys: found.map((one) => String(one['reason'])), next };
          },
          async () => {
            for (const one of (await list({ user_id: cleo.id })).event_reports)
              if (one['reason'] === 'passing') await admin.do('DELETE', `/v1/event_reports/${one.id}`);
            await report('passing');
          },
        );
        const permanent = keys.filter((key) => key !== 'passing').join('');
        assert.equal(permanent, dir === 'f' ? 'abcdef' : 'fedcba');
        for (const { id } of (await list({ user_id: cleo.id })).event_reports)
          await admin.do('DELETE', `/v1/event_reports/${id}`);
      }
    });

    it('shows a report with its event, and deletes it', async () => {
      const { id } = (await list({ dir: 'f' })).event_reports[0]!;
      const report = await admin.do('GET', `/v1/event_reports/${id}`);
      const event = report['event_json'] as { content: unknown; sender: string };
      assert.deepEqual([report['reason'], event.sender], ['one', '@anna:test']);
      assert.deepEqual(event.content, { msgtype: 'm.text', body: 'one' });
      assert.deepEqual(await admin.do('DELETE', `/v1/event_reports/${id}`), {});
      assert.deepEqual(await admin.refused('GET', `/v1/event_reports/${id}`), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.refused('DELETE', `/v1/event_reports/${id}`), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.refused('GET', '/v1/event_reports/x'), [400, 'M_INVALID_PARAM']);
    });
  });

  it('GET /event_reports/{id} shows the original content of a redacted event until the retention period of redacted content ends', async () => {
    const clock = manualClock();
    const day = 24 * 3_600_000;
    const config = { rooms: { redaction_retention_period: 7 * day } };
    const server = await startTestServer({ database: kind, clock, config });
    try {
      const admin = await Administration.open(server);
      const [anna, ben] = [
        await TestClient.register(server, 'anna'),
        await TestClient.register(server, 'ben'),
      ];
      const roomId = await anna.createRoom({ preset: 'public_chat' });
      await ben.join(roomId);
      const eventId = await anna.say(roomId, 'evil');
      await ben.do('POST', `/rooms/${enc(roomId)}/report/${enc(eventId)}`, { reason: 'evil' });
      await anna.do('PUT', `/rooms/${enc(roomId)}/redact/${enc(eventId)}/1`, {});
      const { event_reports } = await admin.do('GET', '/v1/event_reports');
      const [{ id }] = event_reports as [{ id: number }];
      const reportedContent = async () => {
        const report = await admin.do('GET', `/v1/event_reports/${id}`);
        return (report['event_json'] as { content: object }).content;
      };
      assert.deepEqual(await reportedContent(), { msgtype: 'm.text', body: 'evil' });
      clock.advance(7 * day + 6 * 60_000);
      await eventually(
        'the deletion of the original content',
        async () => Object.keys(await reportedContent()).length === 0,
      );
    } finally {
      await server.stop();
    }
  });
});
