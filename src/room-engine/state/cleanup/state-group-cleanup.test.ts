import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import type { JobHandler, JobRequest, Jobs } from '../../../kernel/jobs/index.ts';
import type { JsonValue } from '../../../protocol/index.ts';
import type { RoomTables } from '../../tables.ts';
import { StateGroupCleanup } from './state-group-cleanup.ts';
import { readUsedGroups } from './store.ts';

/** Creates a cleanup whose jobs run when the test calls `run`. */
function openCleanup(fixture: RoomsUnderTest) {
  const scheduled: JobRequest[] = [];
  let handler: JobHandler<JsonValue> | undefined;
  let removed = 0;
  const jobs = {
    register: (_kind: string, registered: JobHandler<JsonValue>) => {
      handler = registered;
    },
    schedule: async (_writer: unknown, request: JobRequest) => {
      if (request.replace) scheduled.splice(0);
      scheduled.push(request);
    },
    list: async () => scheduled.map(({ runAt }) => ({ runAt, running: false })),
  } as unknown as Jobs;
  const onRemoved = (count: number) => {
    removed += count;
  };
  const cleanup = new StateGroupCleanup({ ...fixture, jobs, onRemoved });
  /**
   * Runs scheduled jobs until none is left.
   * @returns how many groups were removed so far
   */
  const run = async (signal = new AbortController().signal, max = Number.POSITIVE_INFINITY) => {
    for (let runs = 0; runs < max; runs += 1) {
      const next = scheduled.shift();
      if (!next) break;
      await handler!.run({ payload: next.payload, signal } as never);
    }
    return removed;
  };
  /**
   * Runs the jobs that are scheduled at the time of the call, and no jobs that are scheduled by these jobs.
   * @returns how many groups were removed so far
   */
  const runOnce = () => run(undefined, scheduled.length);
  return { cleanup, scheduled, run, runOnce };
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('the job that removes unused state groups (StateGroupCleanup)', () => {
    /** Creates a room with many state groups. */
    const openRoom = async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice, bob);
      const { engine } = fixture;
      const set = (type: string, content: Record<string, string>) =>
        fixture.rooms.sending.state(
          { userId: alice, deviceId: 'D' },
          roomId,
          { type, stateKey: '' },
          content,
        );
      for (let index = 0; index < 75; index++) {
        await set(index % 3 === 0 ? 'm.room.topic' : `org.example.${index % 7}`, { topic: `${index}` });
      }
      await engine.settled();
      const { roomNid } = (await engine.heads.get(roomId))!;
      const reader = fixture.database.reader<RoomTables>();
      const count = async () =>
        (await reader.selectFrom('state_groups').select('id').where('room_nid', '=', roomNid).execute())
          .length;
      /** Reads the whole states of all stored events, by event. */
      const states = async ({ engine: from, database }: RoomsUnderTest) => {
        const rows = await database
          .reader<RoomTables>()
          .selectFrom('events')
          .select(['nid', 'state_group'])
          .where('room_nid', '=', roomNid)
          .orderBy('nid')
          .execute();
        const statesByEvent = new Map<number, [number, number][]>();
        for (const { nid, state_group: group } of rows) {
          const loaded = [...(await from.groups.load(group!))].filter(([, event]) => event !== 0);
          statesByEvent.set(
            nid,
            loaded.sort(([a], [b]) => a - b),
          );
        }
        return { statesByEvent, groups: rows.map((row) => row.state_group!) };
      };
      return { fixture, roomId, roomNid, set, count, states };
    };

    it('removes unused state groups and merges unused groups between used groups; all states stay the same, in memory and after a restart', async () => {
      const { fixture, roomId, roomNid, set, count, states } = await openRoom();
      const head = (await fixture.engine.heads.get(roomId))!;
      const current = new Set([...head.state.values()].map(({ nid }) => nid));
      const events = await fixture.engine.events.timeline(roomNid, { limit: 100, direction: 'forward' });
      const deleted = events
        .map(({ nid }) => nid)
        .filter((nid, index) => !current.has(nid) && index % 10 !== 0);
      await fixture.database.transaction<RoomTables, unknown>((writer) =>
        writer.deleteFrom('events').where('nid', 'in', deleted).execute(),
      );
      const before = await states(fixture);
      // Fills the caches of chains and deltas.
      const [first, , , , last] = before.groups.toReversed();
      const differing = async (from: RoomsUnderTest) => {
        const { keys, entryIn } = await from.engine.groups.differences([first!, last!, before.groups[8]!]);
        const keysThatDiffer = (group: number) =>
          keys.filter((key) => entryIn(group, key) !== entryIn(first!, key)).sort();
        return [keysThatDiffer(last!), keysThatDiffer(before.groups[8]!)];
      };
      const differences = await differing(fixture);
      const groupCount = await count();
      const { cleanup, run } = openCleanup(fixture);
      await cleanup.schedule({ roomId, roomNid });
      const abortedSignal = AbortSignal.abort();
      await assert.rejects(run(abortedSignal));
      await cleanup.schedule({ roomId, roomNid });
      const removed = await run();
      assert.ok(removed > 15, `${removed} groups of ${groupCount} were removed`);
      assert.equal(await count(), groupCount - removed);
      assert.deepEqual([await states(fixture), await differing(fixture)], [before, differences]);
      // The next states are built on the chain in memory, and after the restart on the stored chain.
      await set('m.room.topic', { topic: 'in memory' });
      const restarted = await fixture.restart(open);
      const statesAfterRestart = await states(restarted);
      for (const [nid, state] of before.statesByEvent)
        assert.deepEqual(statesAfterRestart.statesByEvent.get(nid), state);
      assert.deepEqual(await differing(restarted), differences);
      const sender = { userId: alice, deviceId: 'D' };
      for (let index = 0; index < 40; index++)
        await restarted.rooms.sending.state(
          sender,
          roomId,
          { type: 'org.example.new', stateKey: '' },
          { topic: `${index}` },
        );
      const newHead = (await restarted.engine.heads.get(roomId))!;
      const loaded = new Set((await restarted.engine.groups.load(newHead.stateGroup!)).values());
      assert.deepEqual(loaded, new Set([...newHead.state.values()].map(({ nid }) => nid)));
      const secondCleanup = openCleanup(restarted);
      await secondCleanup.cleanup.schedule({ roomId, roomNid });
      // The second cleanup removes the chain of the former current state.
      assert.ok((await secondCleanup.run()) > 0);
      const after = await states(restarted);
      for (const [nid, state] of before.statesByEvent) assert.deepEqual(after.statesByEvent.get(nid), state);
      assert.deepEqual(await differing(restarted), differences);
    });

    it('extends the cleanup that a first purge has scheduled to the state groups of a second purge', async () => {
      const { fixture, roomId, roomNid, set } = await openRoom();
      const { cleanup, scheduled } = openCleanup(fixture);
      await cleanup.schedule({ roomId, roomNid });
      const [first] = scheduled;
      fixture.clock.advance(300_000);
      await set('m.room.topic', { topic: 'newer' });
      const { stateGroup } = (await fixture.engine.heads.get(roomId))!;
      await fixture.engine.settled();
      await cleanup.schedule({ roomId, roomNid });
      assert.deepEqual(scheduled, [{ ...first, payload: { roomId, roomNid, upTo: stateGroup } }]);
    });

    it('cleans up the state groups of a room with partial state once its state is complete', async () => {
      const { fixture, roomId, roomNid } = await openRoom();
      const head = (await fixture.engine.heads.get(roomId))!;
      let isPartial = true;
      const get = async () => ({
        roomNid,
        stateGroup: head.stateGroup,
        extremities: head.extremities,
        isPartial,
      });
      const engine = { heads: { get }, removals: fixture.engine.removals };
      const partialFixture = { ...fixture, engine } as unknown as RoomsUnderTest;
      const events = await fixture.engine.events.timeline(roomNid, { limit: 40, direction: 'forward' });
      const current = new Set([...head.state.values()].map(({ nid }) => nid));
      const deleted = events.map(({ nid }) => nid).filter((nid) => !current.has(nid));
      await fixture.database.transaction<RoomTables, unknown>((writer) =>
        writer.deleteFrom('events').where('nid', 'in', deleted).execute(),
      );
      const { cleanup, scheduled, run, runOnce } = openCleanup(partialFixture);
      await cleanup.schedule({ roomId, roomNid });
      assert.equal(await runOnce(), 0);
      assert.equal(scheduled[0]?.runAt, fixture.clock.now() + 600_000);
      isPartial = false;
      assert.ok((await run()) > 0);
    });

    it('deletes a large group in transactions of a thousand entries', async () => {
      const { fixture, roomId, roomNid } = await openRoom();
      const { database } = fixture;
      const id = (await fixture.engine.heads.get(roomId))!.stateGroup! + 1_000;
      await database.batch([
        { sql: 'insert into state_groups (id, room_nid, ordinal) values (?, ?, 0)', rows: [[id, roomNid]] },
        {
          sql: 'insert into state_groups_state (group_id, key_nid, event_nid) values (?, ?, 1)',
          rows: Array.from({ length: 2_500 }, (_, key) => [id, key + 1]),
        },
      ]);
      const sizes: number[] = [];
      const countEntries = async () =>
        (
          await database
            .reader<RoomTables>()
            .selectFrom('state_groups_state')
            .select('key_nid')
            .where('group_id', '=', id)
            .execute()
        ).length;
      const transaction: typeof database.transaction = async (work) => {
        const result = await database.transaction(work);
        sizes.push(await countEntries());
        return result;
      };
      const observedDatabase = new Proxy(database, {
        get: (target, name) =>
          name === 'transaction'
            ? transaction
            : (Reflect.get(target, name).bind?.(target) ?? Reflect.get(target, name)),
      });
      const { cleanup, run, runOnce } = openCleanup(
        Object.assign(Object.create(RoomsUnderTest.prototype), fixture, { database: observedDatabase }),
      );
      await cleanup.schedule({ roomId, roomNid });
      await runOnce();
      sizes.splice(0);
      assert.equal(await run(undefined, 1), 1);
      assert.deepEqual([...new Set(sizes)], [1_500, 500, 0]);
    });

    it('counts as used the state groups of events that are backfilled while it reads the events', async () => {
      const { fixture, roomNid } = await openRoom();
      const { database } = fixture;
      const group = 777_777;
      let queries = 0;
      const transformResult = async <R>({ result }: { result: R }) => {
        queries += 1;
        const insert =
          'insert into events (nid, event_id, room_nid, depth, stream, state_group, flags, json) values (?, ?, ?, 1, ?, ?, 0, ?)';
        if (queries === 2)
          await database.batch([{ sql: insert, rows: [[999_999, '$old', roomNid, -999_999, group, '{}']] }]);
        return result;
      };
      const plugin = { transformQuery: ({ node }: { node: unknown }) => node, transformResult };
      const reading = { scanner: () => database.scanner<RoomTables>().withPlugin(plugin as never) };
      assert.ok((await readUsedGroups(reading as never, roomNid)).has(group));
    });

    it('removes an unused state group only when it is still unused ten minutes later', async () => {
      const { fixture, roomId, roomNid } = await openRoom();
      const { database } = fixture;
      const head = (await fixture.engine.heads.get(roomId))!;
      const id = head.stateGroup! + 1_000;
      const referTo = (group: number | null) =>
        database.batch([
          {
            sql: 'update events set state_before = ? where nid = ?',
            rows: [[group, head.entry('m.room.create', '')!.nid]],
          },
        ]);
      await database.batch([
        {
          sql: 'insert into state_groups (id, room_nid, ordinal) values (?, ?, 0)',
          rows: [[id, roomNid]],
        },
      ]);
      const { cleanup, run, runOnce } = openCleanup(fixture);
      await cleanup.schedule({ roomId, roomNid });
      assert.equal(await runOnce(), 0);
      // An event that was being placed refers to the group.
      await referTo(id);
      assert.equal(await run(), 0);
      await referTo(null);
      await cleanup.schedule({ roomId, roomNid });
      assert.equal(await run(), 1);
    });
  });
});
