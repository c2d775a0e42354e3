import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { joinWithoutMembers } from '../../../test/support/rooms/partial-room.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { Jobs, jobMigrations } from '../../kernel/jobs/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { type RoomTables, StateGroupCleanup } from '../../room-engine/index.ts';
import { cleanCompletedStates } from './completed-states.ts';

/** Unused groups are removed after this many milliseconds. */
const removalDelay = 10 * 60_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('the cleanup of state groups after a partial state was completed (cleanCompletedStates)', () => {
    it('removes the state groups of a partial state that was completed before the start, and leaves the states of all events as they are', async () => {
      const fixture = await RoomsUnderTest.open(open, jobMigrations);
      const { room, complete } = await joinWithoutMembers(fixture, alice);
      const { roomId } = room;
      // Creates so many groups that the newest groups are not built on all older groups.
      for (let index = 0; index < 75; index++)
        await fixture.rooms.sending.state(
          { userId: alice, deviceId: 'D' },
          roomId,
          { type: 'm.room.member', stateKey: alice },
          { membership: 'join', displayname: `Alice ${index}` },
        );
      const { roomNid } = (await fixture.engine.heads.get(roomId))!;
      const groups = async ({ database }: RoomsUnderTest) => {
        const query = database.reader<RoomTables>().selectFrom('state_groups').select('id');
        const rows = await query.where('room_nid', '=', roomNid).orderBy('id').execute();
        return rows.map(({ id }) => id);
      };
      const partial = await groups(fixture);
      await complete();
      const states = async (rooms: RoomsUnderTest) => {
        const rows = await rooms.database
          .reader<RoomTables>()
          .selectFrom('events')
          .select(['nid', 'state_group', 'state_before'])
          .where('room_nid', '=', roomNid)
          .orderBy('nid')
          .execute();
        const load = async (group: number | null) =>
          group === null ? null : [...(await rooms.engine.groups.load(group))].sort(([a], [b]) => a - b);
        return Promise.all(
          rows.map(async (row) => [row.nid, await load(row.state_group), await load(row.state_before)]),
        );
      };
      const before = await states(fixture);
      assert.ok((await groups(fixture)).length > partial.length);
      const restarted = await fixture.restart(open);
      const { database, clock, streams, engine } = restarted;
      const jobs = new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true });
      let removed = 0;
      const onRemoved = (count: number) => {
        removed += count;
      };
      const cleanup = new StateGroupCleanup({ database, clock, streams, engine, jobs, onRemoved });
      cleanCompletedStates({ jobs, streams, engine, groups: cleanup });
      await jobs.start();
      try {
        // Some groups of the partial state stay, because the newest groups are built on them.
        const minRemoved = 16;
        await eventually('the removal of the groups', () => {
          clock.advance(removalDelay);
          return removed >= minRemoved;
        });
        const remainingIds = new Set(await groups(restarted));
        const removedIds = partial.filter((id) => !remainingIds.has(id));
        assert.ok(removedIds.length >= minRemoved, [...remainingIds].join());
        assert.deepEqual(await states(restarted), before);
      } finally {
        await jobs.stop();
      }
    });
  });
});
