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
  /** Opens a remote room that alice has joined and that has `extremityCount` forward extremities. */
  const openRoomWithExtremities = async (extremityCount: number, threshold: number) => {
    const fixture = await RoomsUnderTest.open(open, jobMigrations);
    const { engine, database, clock, caches } = fixture;
    const jobs = new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true });
    let scheduledCount = 0;
    const countingDatabase: Pick<Database, 'transaction'> = {
      transaction: (work) => {
        scheduledCount++;
        return database.transaction(work);
      },
    };
    const otherDeps = { clock, caches, jobs, log: silentLogger, engine, serverName: 'test', threshold };
    const dummyEvents = new DummyEvents({ ...otherDeps, database: countingDatabase as Database });
    await jobs.start();
    const room = new ReferenceRoom();
    await engine.placement.enter(room.room, room.join(alice));
    const fork = async (count: number) => {
      const { forwardExtremities: before } = room;
      const eventIds = Array.from({ length: count }, () => room.say(ann, before));
      for (const eventId of eventIds) await engine.placement.place(room.roomId, room.get(eventId));
    };
    await fork(extremityCount);
    const extremities = async () => (await engine.heads.get(room.roomId))!.extremities.length;
    /**
     * Checks that the job was scheduled (or was not, as `isScheduled` says), advances the clock past its delay, and
     * waits until it has ended. @returns the number of forward extremities
     */
    const runScheduledJob = async (isScheduled = true) => {
      assert.equal(scheduledCount, isScheduled ? 1 : 0);
      scheduledCount = 0;
      const scheduledJobs = () => jobs.list({ kind: 'rooms/dummy-events' });
      if (isScheduled) await eventually('the job', async () => (await scheduledJobs()).length > 0);
      assert.equal((await scheduledJobs()).length, isScheduled ? 1 : 0);
      clock.advance(minute);
      await jobs.settled();
      return extremities();
    };
    const dummyEventsSent = async () => {
      const storedEvents = await engine.events.between(0, fixture.streams.current, 1_000);
      return storedEvents.filter(({ event }) => event.type === 'org.proto.dummy_event');
    };
    const stop = async () => {
      await jobs.stop();
      await engine.close();
    };
    const merge = () => dummyEvents.merge(room.roomId);
    return { fixture, room, fork, extremities, runScheduledJob, dummyEventsSent, merge, stop };
  };

  describe('merging forward extremities with dummy events (DummyEvents)', () => {
    it('merges forward extremities as a local user [option: dummy_events_threshold]', async () => {
      const { fixture, room, extremities, runScheduledJob, dummyEventsSent, stop } =
        await openRoomWithExtremities(25, 5);
      assert.equal(await extremities(), 25);
      assert.ok((await runScheduledJob()) < 5);
      const sent = await dummyEventsSent();
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

    it('merge() merges forward extremities also below the threshold, and returns by how many their number fell', async () => {
      const { extremities, dummyEventsSent, merge, stop } = await openRoomWithExtremities(25, 100);
      assert.equal(await extremities(), 25);
      assert.equal(await merge(), 24);
      assert.equal(await extremities(), 1);
      const sent = (await dummyEventsSent()).length;
      assert.ok(sent > 1 && sent < 5, `${sent} dummy events`);
      assert.equal(await merge(), 0);
      assert.equal((await dummyEventsSent()).length, sent);
      await stop();
    });

    it('sends nothing below the threshold, or when an ordinary event has merged the extremities', async () => {
      const fewExtremities = await openRoomWithExtremities(4, 5);
      assert.equal(await fewExtremities.runScheduledJob(false), 4);
      assert.equal((await fewExtremities.dummyEventsSent()).length, 0);
      await fewExtremities.stop();
      const enoughExtremities = await openRoomWithExtremities(5, 5);
      assert.equal(await enoughExtremities.runScheduledJob(), 1);
      assert.equal((await enoughExtremities.dummyEventsSent()).length, 1, 'the threshold counts as reached');
      await enoughExtremities.stop();
      const { fixture, room, runScheduledJob, dummyEventsSent, stop } = await openRoomWithExtremities(8, 5);
      await fixture.say(alice, room.roomId, 'hello');
      assert.equal(await runScheduledJob(), 1);
      assert.equal((await dummyEventsSent()).length, 0);
      await stop();
    });

    it('pauses for an hour when no local user may send to the room', async () => {
      const { fixture, room, fork, runScheduledJob, dummyEventsSent, stop } = await openRoomWithExtremities(
        1,
        5,
      );
      const levels = {
        type: 'm.room.power_levels',
        sender: ann,
        stateKey: '',
        content: { users: { [ann]: 100 }, events_default: 50 },
      };
      await fixture.engine.placement.place(room.roomId, room.get(room.add(levels)));
      await fork(8);
      assert.equal(await runScheduledJob(), 8);
      const levelsForAlice = {
        ...levels,
        content: { users: { [ann]: 100, [alice]: 50 }, events_default: 50 },
      };
      const { forwardExtremities: before } = room;
      await fixture.engine.placement.place(
        room.roomId,
        room.get(room.add({ ...levelsForAlice, prev: [before[0]!] })),
      );
      assert.equal(await runScheduledJob(false), 8);
      assert.equal((await dummyEventsSent()).length, 0);
      fixture.clock.advance(60 * minute);
      await fixture.engine.placement.place(room.roomId, room.get(room.say(ann, [before[1]!])));
      assert.ok((await runScheduledJob()) < 5);
      assert.equal((await dummyEventsSent()).length, 1);
      await stop();
    });
  });
});
