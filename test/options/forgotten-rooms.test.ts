import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { eventually } from '../clients/eventually.ts';
import { type ManualClock, manualClock } from '../support/clocks/manual-clock.ts';
import { openContents } from '../support/databases/database-contents.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { startTestServer, type TestServer } from '../support/servers/server.ts';
import { enc, TestClient } from '../support/users/test-client.ts';

const minute = 60_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('rooms that all members have forgotten', () => {
    let server: TestServer;
    let clock: ManualClock;
    let ticking: NodeJS.Timeout | undefined;
    afterEach(async () => {
      await server.stop();
      clearInterval(ticking);
    });

    const start = async (forgotten_room_retention_period: number | null) => {
      clock = manualClock();
      // The clock advances in real time, so that retries after write conflicts run.
      clearInterval(ticking);
      ticking = setInterval(() => clock.advance(5), 5);
      const config = { rooms: { forgotten_room_retention_period } };
      server = await startTestServer({ database: open.kind, clock, config });
      const [anna, ben] = [
        await TestClient.register(server, 'anna'),
        await TestClient.register(server, 'ben'),
      ];
      const room = await anna.createRoom({ preset: 'public_chat', room_alias_name: 'place' });
      await ben.join(room);
      await anna.say(room, 'hello');
      return { anna, ben, room };
    };
    const exists = async (client: TestClient, room: string) => {
      const answer = await client.call('GET', `/directory/room/${enc('#place:test')}`);
      if (answer.status === 200) assert.equal(answer.body['room_id'], room);
      return answer.status === 200;
    };
    /** Waits until a job has deleted the room. */
    const waitUntilDeleted = (client: TestClient, room: string) =>
      eventually(`${room} to be deleted`, async () => !(await exists(client, room)));
    /** Waits until all due jobs have run, and checks that they have not deleted the room. */
    const assertNotDeleted = async (client: TestClient, room: string) => {
      const contents = await openContents(server.databaseOptions);
      try {
        await eventually('the end of all jobs that are due', async () => {
          const jobs = (await contents.rows('jobs')).filter(({ state }) => state !== 'failed');
          return jobs.every((job) => job['finished_ts'] !== null || Number(job['run_at']) > clock.now());
        });
      } finally {
        await contents.close();
      }
      assert.ok(await exists(client, room));
    };
    const forget = async (client: TestClient, room: string) => {
      await client.leave(room);
      await client.membership('forget', room);
    };

    it('forgotten rooms are deleted when the retention period has passed since the last member forgot them [option: forgotten_room_retention_period]', async () => {
      const { anna, ben, room } = await start(7 * minute);
      await forget(anna, room);
      clock.advance(8 * minute);
      await ben.say(room, 'still here');
      await forget(ben, room);
      await server.restart();
      clock.advance(6 * minute);
      await assertNotDeleted(anna, room);
      clock.advance(minute);
      await waitUntilDeleted(anna, room);
      const join = await anna.call('POST', `/join/${enc(room)}`, {});
      assert.equal(join.status, 404, join.raw);
      const sync = await anna.sync(undefined, { filter: { room: { include_leave: true } } });
      assert.equal(sync.rooms, undefined);
      const newRoom = await anna.createRoom({ preset: 'public_chat', room_alias_name: 'place' });
      assert.notEqual(newRoom, room);
    });

    it('forgotten rooms are not deleted when a user has joined again, or when there is no retention period', async () => {
      const { anna, ben, room } = await start(7 * minute);
      await forget(anna, room);
      await forget(ben, room);
      clock.advance(3 * minute);
      await anna.join(room);
      clock.advance(8 * minute);
      await assertNotDeleted(anna, room);
      await anna.say(room, 'I am back');
      await server.stop();
      const unlimited = await start(null);
      await forget(unlimited.anna, unlimited.room);
      await forget(unlimited.ben, unlimited.room);
      clock.advance(40 * minute);
      await assertNotDeleted(unlimited.anna, unlimited.room);
    });
  });
});
