import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { ann, ReferenceRoom } from '../../../test/support/rooms/reference-room.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { noFilter } from '../../filters/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import { Jobs, jobMigrations } from '../../kernel/jobs/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { DummyEvents } from './dummy-events.ts';

const minute = 60_000;

forSelectedDatabases(import.meta.url, (open) => {
  /** A remote room with `extremityCount` forward extremities after alice has joined. */
  const roomWith = async (extremityCount: number, threshold: number) => {
    const fixture = await RoomsUnderTest.open(open, jobMigrations);
    const { engine, database, clock, caches } = fixture;
    const jobs = new Jobs({ database, clock, log: silentLogger, alone: true });
    let scheduledCount = 0;
    const countingDatabase: Pick<Database, 'transaction'> = {
      transaction: (work) => {
        scheduledCount++;
        return database.transaction(work);
      },
    };
    const parts = { clock, caches, jobs, log: silentLogger, engine, serverName: 'test', threshold };
    const dummyEvents = new DummyEvents({ ...parts, database: countingDatabase as Database });
    await jobs.start();
    const room = new ReferenceRoom();
    await engine.placement.enter(room.room, room.join(alice));
    const fork = async (count: number) => {
      const { forwardExtremities: before } = room;
      const eventIds = Array.from({ length: count }, () => room.say(ann, before));
      for (const eventId of eventIds) await engine.placement.place(room.roomId, room.get(eventId));
    };
    await fork(extremityCount);
    const extremities = async () => (await engine.heads.get(room.roomId))?.extremities.length;
    /** Advances the clock past the delay of the job and waits for the result. */
    const later = async (isScheduled = true) => {
      assert.equal(scheduledCount, isScheduled ? 1 : 0);
      scheduledCount = 0;
      const scheduledJobs = () => jobs.list({ kind: 'rooms/dummy-events' });
      if (isScheduled) await eventually('the job', async () => (await scheduledJobs()).length > 0);
      assert.equal((await scheduledJobs()).length, isScheduled ? 1 : 0);
      clock.advance(minute);
      await jobs.settled();
      return extremities();
    };
    const dummies = async () => {
      const all = await engine.events.between(0, fixture.streams.current, 1_000);
      return all.filter(({ event }) => event.type === 'org.proto.dummy_event');
    };
    const stop = async () => {
      await jobs.stop();
      await engine.close();
    };
    const merge = () => dummyEvents.merge(room.roomId);
    return { fixture, room, fork, extremities, later, dummies, merge, stop };
  };

  describe('DummyEvents', () => {
    it('merges forward extremities as a local user [option: dummy_events_threshold]', async () => {
      const { fixture, room, extremities, later, dummies, stop } = await roomWith(25, 5);
      assert.equal(await extremities(), 25);
      assert.ok(((await later()) ?? 9) < 5);
      const sent = await dummies();
      assert.ok(sent.length > 0 && sent.length < 5);
      for (const { event } of sent) assert.deepEqual([event.sender, event.content], [alice, {}]);
      const viewer = { userId: alice, deviceId: undefined };
      const request = { direction: 'backward', limit: 100 } as const;
      const { chunk } = await fixture.rooms.historyReader.messages(viewer, room.roomId, {
        ...request,
        filter: noFilter.room.timeline,
      });
      assert.ok(chunk.length >= 25);
      assert.ok(chunk.every(({ type }) => type !== 'org.proto.dummy_event'));
      await stop();
    });

    it('merge() merges forward extremities also below the threshold, and returns by how many their number has decreased', async () => {
      const { extremities, dummies, merge, stop } = await roomWith(25, 100);
      assert.equal(await extremities(), 25);
      assert.equal(await merge(), 24);
      assert.equal(await extremities(), 1);
      const sent = (await dummies()).length;
      assert.ok(sent > 1 && sent < 5, `${sent} dummy events`);
      assert.equal(await merge(), 0);
      assert.equal((await dummies()).length, sent);
      await stop();
    });

    it('sends nothing below the threshold, or when an ordinary event has merged the extremities', async () => {
      const few = await roomWith(4, 5);
      assert.equal(await few.later(false), 4);
      assert.equal((await few.dummies()).length, 0);
      await few.stop();
      const enough = await roomWith(5, 5);
      assert.equal(await enough.later(), 1);
      assert.equal((await enough.dummies()).length, 1, 'the threshold counts as reached');
      await enough.stop();
      const { fixture, room, later, dummies, stop } = await roomWith(8, 5);
      await fixture.say(alice, room.roomId, 'hello');
      assert.equal(await later(), 1);
      assert.equal((await dummies()).length, 0);
      await stop();
    });

    it('pauses for an hour when no local user may send to the room', async () => {
      const { fixture, room, fork, later, dummies, stop } = await roomWith(1, 5);
      const levels = {
        type: 'm.room.power_levels',
        sender: ann,
        stateKey: '',
        content: { users: { [ann]: 100 }, events_default: 50 },
      };
      await fixture.engine.placement.place(room.roomId, room.get(room.add(levels)));
      await fork(8);
      assert.equal(await later(), 8);
      const allowed = { ...levels, content: { users: { [ann]: 100, [alice]: 50 }, events_default: 50 } };
      const { forwardExtremities: before } = room;
      await fixture.engine.placement.place(
        room.roomId,
        room.get(room.add({ ...allowed, prev: [before[0]!] })),
      );
      assert.equal(await later(false), 8);
      assert.equal((await dummies()).length, 0);
      fixture.clock.advance(60 * minute);
      await fixture.engine.placement.place(room.roomId, room.get(room.say(ann, [before[1]!])));
      assert.ok(((await later()) ?? 9) < 5);
      assert.equal((await dummies()).length, 1);
      await stop();
    });
  });
});
