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
  describe('HistoryDeletion', () => {
    it('records gaps in the transaction that deletes events, so that the history can be backfilled after a failure, and lets users send to the room between its transactions', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const ids: string[] = [];
      for (let index = 0; index < 210; index++) ids.push(await fixture.say(alice, roomId, `${index}`));
      const { engine } = fixture;
      const { roomNid } = (await engine.heads.get(roomId))!;
      let ended = 0;
      const deletion = new HistoryDeletion({
        ...fixture,
        serverName: 'test',
        rows: [],
        metrics: openPurgeMetrics(undefined),
        onEnd: async () => {
          ended++;
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
      const stopping = new AbortController();
      const progress = async (next: DeletionProgress) => {
        payload = next;
        stopping.abort();
      };
      await assert.rejects(deletion.run({ payload, signal: stopping.signal, progress }));
      const stored = async () => {
        const rows = await fixture.database
          .reader<RoomTables>()
          .selectFrom('events')
          .select('event_id')
          .where('event_id', 'in', ids)
          .execute();
        const left = new Set(rows.map(({ event_id }) => event_id));
        return ids.filter((id) => left.has(id));
      };
      const [first, ...others] = await stored();
      assert.ok(others.length > 5 && others.length < 100);
      const gap = ids[ids.indexOf(first!) - 1];
      assert.deepEqual(await engine.backwardExtremities(roomId), [gap]);
      assert.equal(ended, 0);
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
      assert.equal(ended, 1);
    });

    it('keeps an event that is a forward extremity in the database and no longer in memory', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const ids: string[] = [];
      for (let index = 0; index < 6; index++) ids.push(await fixture.say(alice, roomId, `${index}`));
      const { engine, database } = fixture;
      await engine.settled();
      const { roomNid } = (await engine.heads.get(roomId))!;
      const events = await engine.events.getManyById(ids);
      // The write of the newer events has failed or is pending.
      const { nid } = events.get(ids[2]!)!;
      await database.batch([
        {
          sql: 'update rooms set extremities = ? where room_nid = ?',
          rows: [[JSON.stringify([nid]), roomNid]],
        },
      ]);
      const deletion = new HistoryDeletion({
        ...fixture,
        ...{ serverName: 'test', rows: [], metrics: openPurgeMetrics(undefined) },
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

  describe('HistoryPurge', () => {
    it('schedules one of two purges of a room that are requested at the same time', async () => {
      const fixture = await RoomsUnderTest.open(open, jobMigrations);
      const { database, clock, engine } = fixture;
      const roomId = await fixture.room(alice);
      const eventId = await fixture.say(alice, roomId, 'hello');
      const jobs = new Jobs({ database, clock, log: silentLogger, alone: true });
      const purge = new HistoryPurge({
        ...{ database, clock, jobs, engine, randomness: systemRandomness, deletion: {} as never },
      });
      const head = (await engine.heads.get(roomId))!;
      const order = { eventId, deleteLocalEvents: true };
      const outcomes = await Promise.allSettled([purge.schedule(head, order), purge.schedule(head, order)]);
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ['fulfilled', 'rejected'],
      );
    });
  });
});
