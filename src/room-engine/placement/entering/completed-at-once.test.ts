import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ManualClock, manualClock } from '../../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases, type OpenDatabase } from '../../../../test/support/databases/databases.ts';
import { joinWithoutMembers } from '../../../../test/support/rooms/partial-room.ts';
import { alice, type RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { openUnreliableRooms } from '../../../../test/support/rooms/unreliable-rooms.ts';
import type { Reserve, StreamWriter } from '../../../kernel/streams/index.ts';
import { splitStateMapKey } from '../../../protocol/index.ts';
import type { RoomReader } from '../../room-reader.ts';
import type { StoredEvent } from '../../stored-event.ts';

/** A clock that advances by a second whenever it is read, so that every time slice is over. */
function fastClock(): ManualClock & { readonly reads: number } {
  let reads = 0;
  return {
    ...manualClock(),
    monotonic: () => ++reads * 1_000,
    get reads() {
      return reads;
    },
  };
}

/** Opens a room that alice has joined with omit_members, and sends events to it. */
async function joinWithPartialState(open: OpenDatabase, messageCount: number) {
  const clock = fastClock();
  const { fixture, database: unreliable } = await openUnreliableRooms(open, { clock });
  const { timeline } = fixture.engine;
  const { room, complete } = await joinWithoutMembers(fixture, alice);
  const sent: string[] = [];
  for (let index = 0; index < messageCount; index++) {
    const draft =
      index % 2 === 0
        ? { type: 'm.room.message', sender: alice, content: { body: `${index}` } }
        : {
            type: 'm.room.member',
            sender: alice,
            stateKey: alice,
            content: { membership: 'join', displayname: `Alice ${index}` },
          };
    sent.push((await timeline.append(room.roomId, draft)).event.eventId);
  }
  return { fixture, clock, room, sent, complete, unreliable };
}

/** Returns the largest number of positions that were reserved in one turn of the event loop during `work`. */
async function maxReservedAtOnce({ streams }: RoomsUnderTest, work: () => Promise<unknown>) {
  const { reserving } = streams;
  let [maxInTurn, inTurn] = [0, 0];
  const count = () => {
    if (inTurn++ === 0) {
      setImmediate(() => {
        inTurn = 0;
      });
    }
    maxInTurn = Math.max(maxInTurn, inTurn);
  };
  streams.reserving = <T>(work: (reserve: Reserve) => T) =>
    reserving.call<StreamWriter, [(reserve: Reserve) => T], T>(streams, (reserve) =>
      work((stream) => {
        count();
        return reserve(stream);
      }),
    );
  try {
    await work();
  } finally {
    streams.reserving = reserving;
  }
  return maxInTurn;
}

async function membersBefore({ engine }: RoomsUnderTest, stored: StoredEvent): Promise<number> {
  const state = await engine.stateAt(stored, 'before');
  return [...(state?.keys() ?? [])].filter((key) => splitStateMapKey(key)[0] === 'm.room.member').length;
}

/** The state groups before and after events. */
async function groupsOf(events: RoomReader['events'], ids: readonly string[]) {
  const eventsById = await events.getManyById(ids);
  return ids.map((id) => [eventsById.get(id)?.stateBefore, eventsById.get(id)?.stateGroup]);
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('completing the states of events since a join with omit_members', () => {
    it('writes the complete states of all events since a partial join at once, prepared in steps that yield to other work', async () => {
      const counts: { reads: number; atOnce: number }[] = [];
      for (const messageCount of [20, 420]) {
        const { fixture, clock, complete, sent } = await joinWithPartialState(open, messageCount);
        const before = clock.reads;
        const atOnce = await maxReservedAtOnce(fixture, complete);
        counts.push({ reads: clock.reads - before, atOnce });
        const events = await fixture.engine.events.getManyById(sent);
        assert.equal(events.size, messageCount);
        for (const stored of events.values()) {
          // Every state has eight members: the five that were omitted, ann, ben and alice.
          assert.equal(await membersBefore(fixture, stored), 8);
        }
      }
      const [few, many] = counts;
      assert.ok(few && many);
      assert.equal(many.atOnce, few.atOnce);
      // The clock is read once for each of the 400 further events, and several times for each batch of redactions, rows
      // and copies.
      assert.ok(many.reads - few.reads >= 400 + 20, `${few.reads} and ${many.reads}`);
    });

    it('keeps the partial states of events until the write of their complete states succeeds', async () => {
      const { fixture, complete, sent, room, unreliable } = await joinWithPartialState(open, 30);
      const { events, heads } = fixture.engine;
      const before = await groupsOf(events, sent);
      unreliable.fails = (batch) => batch.some(({ sql }) => sql.includes('partial_state'));
      await assert.rejects(complete(), /the disk is full/);
      assert.deepEqual(await groupsOf(events, sent), before);
      assert.equal((await heads.get(room.roomId))?.isPartial, true);
      await fixture.say(alice, room.roomId, 'still here');
      unreliable.fails = () => false;
      await complete();
      assert.equal((await heads.get(room.roomId))?.isPartial, false);
      const after = await groupsOf(events, sent);
      for (const [index, groups] of after.entries()) assert.notDeepEqual(groups, before[index]);
      const restarted = await fixture.restart(open);
      assert.deepEqual(await groupsOf(restarted.engine.events, sent), after);
    });

    it('reads events with their complete states while these states are being written', async () => {
      const { fixture, complete, sent, unreliable, room } = await joinWithPartialState(open, 10);
      const releaseWrite = Promise.withResolvers<void>();
      const writeBegun = Promise.withResolvers<void>();
      unreliable.delay = (batch) => {
        if (!batch.some(({ sql }) => sql.includes('partial_state'))) return undefined;
        writeBegun.resolve();
        return releaseWrite.promise;
      };
      const completing = complete();
      await writeBegun.promise;
      const read = await fixture.engine.events.getById(sent[0]!);
      assert.equal(await membersBefore(fixture, read!), 8);
      // A redaction that is sent during the write is not lost.
      const appendRedaction = fixture.engine.timeline.append(room.roomId, {
        type: 'm.room.redaction',
        sender: alice,
        redacts: sent[0]!,
        content: {},
      });
      releaseWrite.resolve();
      await completing;
      const { nid } = await appendRedaction;
      assert.equal((await fixture.engine.events.getById(sent[0]!))?.redactedBy, nid);
      const restarted = await fixture.restart(open);
      assert.equal((await restarted.engine.events.getById(sent[0]!))?.redactedBy, nid);
    });

    it('keeps an event redacted when the redaction takes effect while the state of the event is being completed', async () => {
      const { fixture, complete, sent, room } = await joinWithPartialState(open, 40);
      const redactions: Promise<{ readonly nid: number }>[] = [];
      let isDone = false;
      const completing = complete().finally(() => {
        isDone = true;
      });
      for (let turn = 0; !isDone && redactions.length < 10; turn++) {
        if (turn % 9 === 3) {
          const redacts = sent[redactions.length * 2]!;
          const draft = { type: 'm.room.redaction', sender: alice, redacts, content: {} };
          redactions.push(fixture.engine.timeline.append(room.roomId, draft));
        }
        await new Promise(setImmediate);
      }
      await completing;
      assert.ok(redactions.length > 2);
      const check = async (tested: RoomsUnderTest) => {
        for (const [index, redaction] of redactions.entries()) {
          const stored = await tested.engine.events.getById(sent[index * 2]!);
          assert.equal(stored?.redactedBy, (await redaction).nid);
        }
      };
      await check(fixture);
      await check(await fixture.restart(open));
    });
  });
});
