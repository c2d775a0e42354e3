import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { Jobs, jobMigrations } from '../../kernel/jobs/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import type { RoomTables } from '../../room-engine/index.ts';
import { type DeletionProgress, HistoryDeletion } from './history-deletion.ts';
import { HistoryPurge } from './history-purge.ts';
import { openPurgeMetrics } from './purge-metrics.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('deleting old messages of a room (HistoryDeletion)', () => {
    it('records backward extremities in the transaction that deletes events, so that the history can be backfilled after a failure, and lets users send to the room between the transactions of the deletion', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const ids: string[] = [];
      for (let index = 0; index < 210; index++) ids.push(await fixture.say(alice, roomId, `${index}`));
      const { engine } = fixture;
      const { roomNid } = (await engine.heads.get(roomId))!;
      let endCount = 0;
      const deletion = new HistoryDeletion({
        ...fixture,
        serverName: 'test',
        rows: [],
        metrics: openPurgeMetrics(undefined),
        onEnd: async () => {
          endCount++;
        },
      });
      const { depth } = (await engine.events.getById(ids[208]!))!.event;
      let payload: DeletionProgress = {
        roomId,
        roomNid,
        depth,
        deleteLocalEvents: true,
        step: 'timeline',
        after: null,
      };
      const stopController = new AbortController();
      const progress = async (next: DeletionProgress) => {
        payload = next;
        stopController.abort();
      };
      await assert.rejects(deletion.run({ payload, signal: stopController.signal, progress }));
      const stored = async () => {
        const rows = await fixture.database
          .reader<RoomTables>()
          .selectFrom('events')
          .select('event_id')
          .where('event_id', 'in', ids)
          .execute();
        const remainingIds = new Set(rows.map(({ event_id }) => event_id));
        return ids.filter((id) => remainingIds.has(id));
      };
      const [first, ...remaining] = await stored();
      assert.ok(remaining.length > 5 && remaining.length < 100);
      const gap = ids[ids.indexOf(first!) - 1];
      assert.deepEqual(await engine.backwardExtremities(roomId), [gap]);
      assert.equal(endCount, 0);
      const sent: string[] = [];
      await deletion.run({
        payload,
        signal: new AbortController().signal,
        progress: async () => {
          sent.push(await fixture.say(alice, roomId, 'meanwhile'));
        },
      });
      await engine.settled();
      assert.ok(sent.length > 1);
      assert.equal((await engine.events.getManyById(sent)).size, sent.length);
      assert.deepEqual(await stored(), ids.slice(208));
      assert.deepEqual(await engine.backwardExtremities(roomId), [ids[207]]);
      assert.equal(endCount, 1);
    });

    it('keeps an event that the database lists as a forward extremity, although the head in memory does not', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const ids: string[] = [];
      for (let index = 0; index < 6; index++) ids.push(await fixture.say(alice, roomId, `${index}`));
      const { engine, database } = fixture;
      await engine.settled();
      const { roomNid } = (await engine.heads.get(roomId))!;
      const events = await engine.events.getManyById(ids);
      // Gives the row of the room the content that it has until the newer events are written.
      const { nid } = events.get(ids[2]!)!;
      await database.batch([
        {
          sql: 'update rooms set extremities = ? where room_nid = ?',
          rows: [[JSON.stringify([nid]), roomNid]],
        },
      ]);
      const deletion = new HistoryDeletion({
        ...fixture,
        serverName: 'test',
        rows: [],
        metrics: openPurgeMetrics(undefined),
        onEnd: async () => undefined,
      });
      const { depth } = events.get(ids[5]!)!.event;
      const payload = {
        roomId,
        roomNid,
        depth,
        deleteLocalEvents: true,
        step: 'timeline',
        after: null,
      } as const;
      const { signal } = new AbortController();
      await deletion.run({ payload, signal, progress: async () => undefined });
      assert.deepEqual([...(await engine.events.getManyById(ids)).keys()], [ids[2], ids[5]]);
      assert.deepEqual((await engine.backwardExtremities(roomId)).sort(), [ids[1], ids[4]].sort());
    });
  });

  describe('scheduling a purge of history (HistoryPurge)', () => {
    it('schedules only one of two purges of a room that are requested at the same time', async () => {
      const fixture = await RoomsUnderTest.open(open, jobMigrations);
      const { database, clock, engine } = fixture;
      const roomId = await fixture.room(alice);
      const eventId = await fixture.say(alice, roomId, 'hello');
      const jobs = new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true });
      const purge = new HistoryPurge({
        database,
        clock,
        jobs,
        engine,
        randomness: systemRandomness,
        deletion: {} as never,
      });
      const head = (await engine.heads.get(roomId))!;
      const order = { eventId, deleteLocalEvents: true };
      const outcomes = await Promise.allSettled([purge.schedule(head, order), purge.schedule(head, order)]);
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ['fulfilled', 'rejected'],
      );
    });

    it('continues a purge that a restart interrupts, and returns its status and progress by the same id before and after the restart', async () => {
      const first = await RoomsUnderTest.open(open, jobMigrations);
      const roomId = await first.room(alice);
      const ids: string[] = [];
      for (let index = 0; index < 450; index++) ids.push(await first.say(alice, roomId, `${index}`));
      await first.engine.settled();
      /** Opens the purges of a process. @param onProgress called after the progress of a deletion is stored */
      const openPurge = (fixture: RoomsUnderTest, onProgress: (jobs: Jobs) => void) => {
        const { database, clock, engine } = fixture;
        const jobs = new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true });
        const metrics = openPurgeMetrics(undefined);
        const onEnd = async () => undefined;
        const realDeletion = new HistoryDeletion({
          ...fixture,
          serverName: 'test',
          rows: [],
          metrics,
          onEnd,
        });
        const starts: DeletionProgress['after'][] = [];
        const deletion = {
          run(attempt: Parameters<HistoryDeletion['run']>[0]) {
            starts.push(attempt.payload.after);
            const progress = async (next: DeletionProgress) => {
              await attempt.progress(next);
              onProgress(jobs);
            };
            return realDeletion.run({ ...attempt, progress });
          },
        } as HistoryDeletion;
        const deps = { database, clock, jobs, engine, randomness: systemRandomness, deletion };
        return { purge: new HistoryPurge(deps), jobs, starts };
      };
      const storedOf = async ({ engine }: RoomsUnderTest) => (await engine.events.getManyById(ids)).size;
      let stopped: Promise<void> | undefined;
      const interrupted = openPurge(first, (jobs) => {
        stopped ??= jobs.stop();
      });
      await interrupted.jobs.start();
      const head = (await first.engine.heads.get(roomId))!;
      const id = await interrupted.purge.schedule(head, { eventId: ids.at(-1)!, deleteLocalEvents: true });
      await interrupted.jobs.settled();
      await stopped;
      const depth = (await first.engine.events.getById(ids.at(-1)!))!.event.depth;
      const active = { status: 'active', error: undefined, progress: { done: 200, total: depth } };
      assert.deepEqual(await interrupted.purge.status(id), active);
      const second = await first.restart(open);
      const remaining = await storedOf(second);
      assert.ok(remaining > 200 && remaining < 300, `${remaining} events`);
      const { purge, jobs, starts } = openPurge(second, () => undefined);
      assert.deepEqual(await purge.status(id), active);
      await jobs.start();
      await jobs.settled();
      const complete = { status: 'complete', error: undefined, progress: { done: depth, total: depth } };
      assert.deepEqual(await purge.status(id), complete);
      assert.deepEqual(interrupted.starts, [null]);
      assert.ok(starts.length === 1 && starts[0] !== null);
      await second.engine.settled();
      assert.equal(await storedOf(second), 1);
      await jobs.stop();
    });
  });
});
