import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { alice, bob, carol, RoomsUnderTest, RoutesUnderTest } from '../../test/support/rooms/rooms.ts';
import { startTestServer } from '../../test/support/servers/server.ts';
import { reportMigrations } from './migrations.ts';
import { Reports } from './reports.ts';
import { reportRoutes } from './routes.ts';

const path = (...parts: string[]) => `/${parts.map(encodeURIComponent).join('/')}`;

forSelectedDatabases(import.meta.url, (open) => {
  describe('reports', () => {
    let fixture: RoomsUnderTest;
    let http: RoutesUnderTest;
    let reports: Reports;
    let roomId: string;
    before(async () => {
      fixture = await RoomsUnderTest.open(open, reportMigrations);
      reports = new Reports({
        ...fixture,
        serverName: 'test',
        userExists: async (userId) => userId === bob,
        limit: { take: () => undefined, check: () => undefined },
        database: fixture.database,
        clock: fixture.clock,
        engine: fixture.engine,
      });
      http = await RoutesUnderTest.start(reportRoutes(reports), fixture.clock);
      roomId = await fixture.room(alice, bob);
    });
    after(() => http.stop());

    const post = async (userId: string, url: string, body: object) =>
      (await http.call(userId, 'POST', url, body)).status;
    const latest = async () => (await reports.list({ limit: 1 }))[0];

    it('stores a report of an event with the sender of the event', async () => {
      const eventId = await fixture.say(bob, roomId, 'spam');
      const body = { reason: 'it is spam', score: -100 };
      assert.equal(await post(alice, path('rooms', roomId, 'report', eventId), body), 200);
      const { id, ...report } = (await latest())!;
      assert.deepEqual(report, {
        kind: 'event',
        receivedTs: fixture.clock.now(),
        reporter: alice,
        roomId,
        eventId,
        userId: bob,
        reason: 'it is spam',
        score: -100,
      });
      assert.equal(await post(alice, path('rooms', roomId, 'report', eventId), {}), 200);
      assert.equal((await latest())?.reason, undefined);
      assert.equal((await reports.list({ before: id, limit: 5 })).length, 0);
    });

    it('answers 404 to reports of events that the reporter cannot see', async () => {
      const eventId = await fixture.say(bob, roomId, 'spam');
      const other = await fixture.room(carol);
      assert.equal(await post(carol, path('rooms', roomId, 'report', eventId), {}), 404);
      assert.equal(await post(carol, path('rooms', other, 'report', eventId), {}), 404);
      assert.equal(await post(alice, path('rooms', roomId, 'report', '$nothing'), {}), 404);
    });

    it('stores reports of remote users and of rooms and local users that exist, answers 404 for unknown rooms and 200 for unknown users', async () => {
      const count = async () => (await reports.list({ limit: 100 })).length;
      const before = await count();
      assert.equal(await post(carol, path('rooms', roomId, 'report'), { reason: 'a room of spam' }), 200);
      assert.deepEqual([(await latest())?.kind, (await latest())?.roomId], ['room', roomId]);
      assert.equal(await post(carol, path('users', bob, 'report'), { reason: 'nul \0' }), 200);
      assert.deepEqual([(await latest())?.userId, (await latest())?.reason], [bob, 'nul ']);
      assert.equal(await post(carol, path('users', '@eve:elsewhere', 'report'), { reason: '' }), 200);
      assert.equal((await latest())?.userId, '@eve:elsewhere');
      assert.equal(await count(), before + 3);
      assert.equal(await post(carol, path('rooms', '!nothing:test', 'report'), { reason: '' }), 404);
      assert.equal(await post(carol, path('users', '@nobody:test', 'report'), { reason: '' }), 200);
      assert.equal(await count(), before + 3);
    });

    it('answers 400 to malformed reports', async () => {
      assert.equal(await post(carol, path('rooms', roomId, 'report'), {}), 400);
      assert.equal(await post(carol, path('users', bob, 'report'), { reason: 3 }), 400);
      assert.equal(await post(carol, path('users', 'bob', 'report'), { reason: '' }), 400);
    });
  });

  it('limits the rate of reports by user [option: rc_reports]', async () => {
    const rc_reports = { per_second: 0.001, burst_count: 2 };
    const server = await startTestServer({ database: open.kind, config: { rateLimits: { rc_reports } } });
    try {
      const { token } = await server.register('alice');
      const report = () =>
        server.api('POST', path('_matrix', 'client', 'v3', 'users', '@eve:elsewhere', 'report'), {
          token,
          body: { reason: 'spam' },
        });
      assert.deepEqual([(await report()).status, (await report()).status], [200, 200]);
      const refused = await report();
      assert.deepEqual([refused.status, refused.body['errcode']], [429, 'M_LIMIT_EXCEEDED']);
    } finally {
      await server.stop();
    }
  });
});
