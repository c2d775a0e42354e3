import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer, type TestUser } from '../../../test/support/servers/server.ts';
import { TestRoom } from '../../../test/support/users/test-room.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('GET /rooms/{roomId}/timestamp_to_event', () => {
    const clock = manualClock();
    let server: TestServer;
    let alice: TestUser;
    let bob: TestUser;
    before(async () => {
      server = await startTestServer({ database: open.kind, clock });
      [alice, bob] = [await server.register('alice'), await server.register('bob')];
    });
    after(() => server.stop());

    const find = async (room: TestRoom, user: TestUser, ts: number | string, dir: string) => {
      const query = { ts, dir };
      const answer = await room.call(user, 'GET', '/timestamp_to_event', { query, version: 'v1' });
      return answer.status === 200
        ? [answer.body['event_id'], answer.body['origin_server_ts']]
        : [answer.status, answer.body['errcode']];
    };

    it('returns the closest event in either direction', async () => {
      const room = await TestRoom.create(server, alice);
      await clock.advance(1_000);
      const first = clock.now();
      const firstId = await room.say(alice, 'one');
      await clock.advance(1_000);
      const second = clock.now();
      const secondId = await room.say(alice, 'two');
      for (const dir of ['f', 'b']) assert.deepEqual(await find(room, alice, first, dir), [firstId, first]);
      assert.deepEqual(await find(room, alice, first + 1, 'b'), [firstId, first]);
      assert.deepEqual(await find(room, alice, first + 1, 'f'), [secondId, second]);
      assert.deepEqual(await find(room, alice, second + 9, 'b'), [secondId, second]);
      assert.deepEqual(await find(room, alice, second + 1, 'f'), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await find(room, alice, 0, 'b'), [404, 'M_NOT_FOUND']);
    });

    it('returns only events that the user may see', async () => {
      const visibility = { type: 'm.room.history_visibility', content: { history_visibility: 'joined' } };
      const room = await TestRoom.create(server, alice, [], {
        preset: 'public_chat',
        initial_state: [{ ...visibility, state_key: '' }],
      });
      await clock.advance(1_000);
      const hidden = clock.now();
      for (let count = 0; count < 60; count++) await room.say(alice, 'hidden');
      assert.deepEqual(await find(room, bob, hidden, 'f'), [403, 'M_FORBIDDEN']);
      await clock.advance(1_000);
      await room.join(bob);
      const seen = await room.say(alice, 'seen');
      await clock.advance(1_000);
      assert.equal((await find(room, bob, clock.now(), 'b'))[0], seen);
      const [, ts] = await find(room, bob, hidden, 'f');
      assert.equal(ts, hidden + 1_000);
    });

    it('refuses a malformed timestamp or direction with 400', async () => {
      const room = await TestRoom.create(server, alice);
      assert.equal((await find(room, alice, 1, 'x'))[0], 400);
      assert.equal((await find(room, alice, 'noon', 'f'))[0], 400);
      assert.equal((await find(room, alice, -1, 'f'))[0], 400);
    });
  });
});
