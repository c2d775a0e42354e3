import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { ann, ben, cat, ReferenceRoom } from '../../../../test/support/rooms/reference-room.ts';
import { alice, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import type { RoomFact } from '../../stored-event.ts';

forSelectedDatabases(import.meta.url, (open) => {
  /** Enters a room, with alice, that has events from before her join. */
  const enterRoomWithHistory = async () => {
    const fixture = await RoomsUnderTest.open(open);
    const room = new ReferenceRoom();
    const before = room.forwardExtremities;
    const past = [room.say(ann), room.member(cat, 'join'), room.say(cat), room.say(ben)];
    await fixture.engine.placement.enter(room.room, room.join(alice));
    const facts: RoomFact[] = [];
    fixture.engine.stream.subscribe((fact) => facts.push(fact));
    /** Returns the events to backfill; for the oldest, the state before it is supplied. */
    const older = async (eventIds: readonly string[]) => {
      const { state, authChain } = room.stateAndAuthChain(room.stateBefore(eventIds[0]!));
      await fixture.engine.placement.addOutliers(room.room, [...authChain, ...state]);
      return eventIds.map((eventId, index) => ({
        event: room.get(eventId),
        ...(index === 0 && { stateBefore: state.map(({ event }) => event.eventId) }),
      }));
    };
    const history = async (tested = fixture) => {
      const head = await tested.engine.heads.get(room.roomId);
      const range = { limit: 100, direction: 'forward' } as const;
      return (await tested.engine.events.history(head?.roomNid ?? 0, undefined, range)).map(
        ({ event }) => event.eventId,
      );
    };
    return { fixture, room, past, before, facts, older, history };
  };

  describe('backfilling older events (Placement.backfill)', () => {
    it('places older events before the timeline, in whatever order they are given, and changes no state', async () => {
      const { fixture, room, past, facts, older, history } = await enterRoomWithHistory();
      const { placement, heads } = fixture.engine;
      const joined = room.forwardExtremities[0]!;
      const head = await heads.get(room.roomId);
      const state = new Map(head?.state);
      assert.deepEqual(await fixture.engine.backwardExtremities(room.roomId), [past[3]]);
      await placement.backfill(room.roomId, (await older(past.slice(2))).toReversed());
      assert.deepEqual(await fixture.engine.backwardExtremities(room.roomId), [past[1]]);
      await placement.backfill(room.roomId, await older(past.slice(0, 2)));
      assert.deepEqual(await history(), [...past, joined]);
      const stored = await fixture.engine.events.getManyById(past);
      for (const event of stored.values()) assert.ok((event.stream ?? 0) < 0);
      assert.deepEqual(new Map(head?.state), state);
      assert.deepEqual(
        head?.extremities.map(({ eventId }) => eventId),
        [joined],
      );
      assert.deepEqual(
        facts.map(({ onTimeline, stateChanges }) => [onTimeline, stateChanges.length]),
        past.map(() => [false, 0]),
      );
      for (const eventId of past) {
        const event = stored.get(eventId);
        assert.ok(event);
        const stateAfter = (await fixture.engine.stateAt(event, 'after')) ?? new Map();
        assert.deepEqual([...stateAfter.keys()].sort(), [...room.stateAfter([eventId]).keys()].sort());
      }
      assert.deepEqual(await history(await fixture.restart(open)), [...past, joined]);
    });

    it('shows a redaction to clients when its target is backfilled or stored as an outlier', async () => {
      const { fixture, room, past, older } = await enterRoomWithHistory();
      const { placement, events } = fixture.engine;
      const redact = (redacts: string) =>
        room.add({ type: 'm.room.redaction', sender: ann, redacts, content: { redacts } });
      const [redactionOfMessage, redactionOfMember] = [
        redact(past[3]!),
        redact(room.member(cat, 'join', { prev: [past[0]!] })),
      ];
      const withheld = async (eventId: string) => (await events.getById(eventId))?.withheld;
      const outlier = room.get(redactionOfMember).event.redacts!;
      for (const eventId of [redactionOfMessage, redactionOfMember]) {
        const stateBefore = (await fixture.engine.heads.get(room.roomId))?.state.values() ?? [];
        const ids = [...stateBefore].map((entry) => entry.eventId);
        await placement.place(room.roomId, room.get(eventId), { stateBefore: ids });
      }
      assert.deepEqual([await withheld(redactionOfMessage), await withheld(redactionOfMember)], [true, true]);
      await placement.backfill(room.roomId, (await older(past.slice(3))).toReversed());
      assert.deepEqual(
        [await withheld(redactionOfMessage), await withheld(redactionOfMember)],
        [false, true],
      );
      await placement.addOutliers(room.room, [room.get(outlier)]);
      assert.equal(await withheld(redactionOfMember), false);
      assert.equal(
        (await events.getById(outlier))?.redactedBy,
        (await events.getById(redactionOfMember))?.nid,
      );
    });

    it('adds events that EventStore.betweenWithBackfill returns and EventStore.between does not return', async () => {
      const { fixture, past, room, older } = await enterRoomWithHistory();
      const from = fixture.streams.current;
      await fixture.engine.placement.backfill(room.roomId, await older(past));
      const upTo = fixture.streams.current;
      const backfilled = await fixture.engine.events.betweenWithBackfill(from, upTo, 100);
      assert.deepEqual(
        backfilled.map(({ stored }) => stored.event.eventId),
        past,
      );
      assert.deepEqual(
        await fixture.engine.events.betweenWithBackfill(backfilled[1]?.position ?? 0, upTo, 1),
        [backfilled[2]],
      );
      assert.deepEqual(await fixture.engine.events.between(from, upTo, 100), []);
      const head = await fixture.engine.heads.get(room.roomId);
      const timeline = { limit: 100, direction: 'backward' } as const;
      assert.equal((await fixture.engine.events.timeline(head?.roomNid ?? 0, timeline)).length, 1);
    });

    it('stores disallowed events as rejected, and places the events before and after them', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const room = new ReferenceRoom();
      const first = room.say(ann);
      const intruder = room.say(cat);
      const last = room.say(ben, [intruder]);
      await fixture.engine.placement.enter(room.room, room.join(alice, [last]));
      const { state, authChain } = room.stateAndAuthChain(room.stateBefore(first));
      await fixture.engine.placement.addOutliers(room.room, [...authChain, ...state]);
      await fixture.engine.placement.backfill(room.roomId, [
        { event: room.get(first), stateBefore: state.map(({ event }) => event.eventId) },
        { event: room.get(intruder) },
        { event: room.get(last) },
      ]);
      const backfilled = await fixture.engine.events.getManyById([first, intruder, last]);
      assert.deepEqual(
        [first, intruder, last].map((id) => [
          backfilled.get(id)?.rejected,
          backfilled.get(id)?.stream === undefined,
        ]),
        [
          [false, false],
          [true, true],
          [false, false],
        ],
      );
    });

    it('ignores events that no backward extremity leads to', async () => {
      const { fixture, room, older, past } = await enterRoomWithHistory();
      await fixture.engine.placement.backfill(room.roomId, await older([past[0]!]));
      assert.equal(await fixture.engine.events.getById(past[0]!), undefined);
    });

    it('places all events up to the create event, and leaves no backward extremity', async () => {
      const { fixture, room, history } = await enterRoomWithHistory();
      const eventIds = [...room.events.keys()];
      await fixture.engine.placement.backfill(
        room.roomId,
        eventIds.slice(0, -1).map((eventId) => ({ event: room.get(eventId) })),
      );
      assert.deepEqual(await history(), eventIds);
      assert.deepEqual(await fixture.engine.backwardExtremities(room.roomId), []);
    });
  });
});
