import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { ann, ben, cat, ReferenceRoom } from '../../../../test/support/rooms/reference-room.ts';
import { alice, bob, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import type { RoomTables } from '../../tables.ts';

forSelectedDatabases(import.meta.url, (open) => {
  const enterRoom = async () => {
    const fixture = await RoomsUnderTest.open(open);
    const room = new ReferenceRoom();
    await fixture.engine.placement.enter(room.room, room.join(alice));
    const send = (eventId: string) => fixture.engine.placement.place(room.roomId, room.get(eventId));
    /** Adds the events of local users to the reference room, and compares the states of both rooms. */
    const check = async (tested = fixture) => {
      const head = await tested.engine.heads.get(room.roomId);
      assert.ok(head);
      const storedEvents = await tested.engine.events.between(0, tested.streams.current, 10_000);
      for (const { event } of storedEvents) {
        if (room.events.has(event.eventId)) continue;
        assert.ok(event.prevEventIds.length <= 10);
        room.addExisting({ event, json: JSON.stringify(event.pdu) });
        assert.ok(
          !room.rejected.has(event.eventId),
          'other servers accept the events that local users may send',
        );
      }
      const forwardExtremities = head.extremities.map(({ eventId }) => eventId);
      const state = [...head.state].map(([key, { eventId }]) => [key, eventId]).sort();
      assert.deepEqual(state, [...room.stateAfter(forwardExtremities)].sort());
      for (const stored of storedEvents) {
        const after = await tested.engine.stateAt(stored, 'after');
        const events = await tested.engine.events.getMany(after?.values() ?? []);
        const ids = [...(after ?? [])].map(([key, nid]) => [key, events.get(nid)?.event.eventId]).sort();
        assert.deepEqual(ids, [...room.stateAfter([stored.event.eventId])].sort());
      }
      return forwardExtremities;
    };
    return { fixture, room, send, check };
  };

  describe('a room with many forward extremities', () => {
    it('accepts events of local users; each event merges at most ten of the forks', async () => {
      const { fixture, room, send, check } = await enterRoom();
      const before = room.forwardExtremities;
      for (let user = 0; user < 25; user++) {
        await send(room.member(`@u${user}:d.example`, 'join', { prev: before }));
      }
      assert.equal((await check()).length, 25);
      await fixture.say(alice, room.roomId, 'one');
      assert.equal((await check()).length, 16);
      await fixture.rooms.sending.state(
        { userId: alice, deviceId: undefined },
        room.roomId,
        { type: 'm.room.member', stateKey: alice },
        { membership: 'join', displayname: 'Alice' },
      );
      assert.equal((await check()).length, 7);
      await fixture.say(alice, room.roomId, 'three');
      assert.equal((await check()).length, 1);
      const restarted = await fixture.restart(open);
      await restarted.say(alice, room.roomId, 'four');
      assert.equal((await check(restarted)).length, 1);
    });

    it('creates no state groups when only message events fork', async () => {
      const { fixture, room, send, check } = await enterRoom();
      const groups = async () => {
        const rows = await fixture.database
          .reader<RoomTables>()
          .selectFrom('state_groups')
          .select('id')
          .execute();
        return rows.length;
      };
      const before = room.forwardExtremities;
      const groupCount = await groups();
      for (let index = 0; index < 60; index++) await send(room.say(ann, before));
      assert.equal((await check()).length, 60);
      assert.equal(await groups(), groupCount);
      await fixture.say(alice, room.roomId, 'hello');
      assert.equal((await check()).length, 51);
      assert.equal(await groups(), groupCount);
    });

    it('resolves the state of a fork once for all events after the same previous events', async () => {
      const { fixture, room, send, check } = await enterRoom();
      const before = room.forwardExtremities;
      const topic = (text: string) =>
        room.add({ type: 'm.room.topic', sender: ann, stateKey: '', content: { topic: text }, prev: before });
      const forkedTopics = [topic('one'), topic('two')];
      for (const eventId of forkedTopics) await send(eventId);
      await send(room.say(ben, forkedTopics));
      const count = async () =>
        (await fixture.database.reader<RoomTables>().selectFrom('state_groups').select('id').execute())
          .length;
      const groupCount = await count();
      for (let index = 0; index < 5; index++) await send(room.say(ben, forkedTopics));
      assert.equal(await count(), groupCount);
      await check();
    });
  });

  describe('sending events while remote events are placed (EventAppender.append)', () => {
    it('sends events of local users while remote events are placed, forks included', async () => {
      const { fixture, room, send, check } = await enterRoom();
      await fixture.join(bob, room.roomId);
      const before = room.forwardExtremities;
      for (let round = 0; round < 12; round++) {
        const prev = round % 3 === 0 ? before : room.forwardExtremities;
        const remote = [
          room.say(ann, prev),
          room.add({ type: 'm.room.topic', sender: ann, stateKey: '', content: { topic: `${round}` }, prev }),
          room.member(cat, round % 2 ? 'leave' : 'join', { prev: before }),
        ];
        const ownMembership = { type: 'm.room.member', stateKey: alice };
        const sender = { userId: alice, deviceId: undefined };
        await Promise.all([
          ...remote.map(send),
          ...Array.from({ length: 5 }, (_, index) => fixture.say(alice, room.roomId, `${round} ${index}`)),
          fixture.rooms.sending.state(sender, room.roomId, ownMembership, {
            membership: 'join',
            displayname: `${round}`,
          }),
        ]);
        await check();
      }
      await check(await fixture.restart(open));
    });
  });
});
