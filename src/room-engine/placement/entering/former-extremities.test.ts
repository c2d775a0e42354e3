import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { ann, ben, ReferenceRoom } from '../../../../test/support/rooms/reference-room.ts';
import { alice, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import type { RoomTables } from '../../tables.ts';

forSelectedDatabases(import.meta.url, (open) => {
  const enterRoom = async () => {
    const fixture = await RoomsUnderTest.open(open);
    const room = new ReferenceRoom();
    await fixture.engine.placement.enter(room.room, room.join(alice));
    return { fixture, room };
  };

  const forwardExtremities = async (fixture: RoomsUnderTest, room: ReferenceRoom) =>
    (await fixture.engine.heads.get(room.roomId))?.extremities.map(({ eventId }) => eventId);

  /** Returns the former extremities of the head, after comparing them with the former extremities on disk. */
  const formerExtremities = async (fixture: RoomsUnderTest, room: ReferenceRoom): Promise<string[]> => {
    const head = await fixture.engine.heads.get(room.roomId);
    assert.ok(head);
    const row = await fixture.database
      .reader<RoomTables>()
      .selectFrom('rooms')
      .select('former_extremities')
      .where('room_id', '=', room.roomId)
      .executeTakeFirstOrThrow();
    assert.deepEqual(JSON.parse(row.former_extremities ?? '[]'), head.formerExtremities);
    const events = await fixture.engine.events.getMany(head.formerExtremities);
    return head.formerExtremities.map((nid) => events.get(nid)?.event.eventId ?? '');
  };

  /**
   * Another user sends an event after `prev` that this server does not receive, and alice joins again.
   * @returns the event id of her join
   */
  const enterAgain = async (fixture: RoomsUnderTest, room: ReferenceRoom, prev: readonly string[]) => {
    const unreceived = room.say(ann, prev);
    const { event, ...answer } = room.join(alice, [unreceived]);
    await fixture.engine.placement.enter(room.room, { event, ...answer });
    return event.event.eventId;
  };

  describe('the former forward extremities of a room (RoomHead.formerExtremities)', () => {
    it('are absent in a room that is entered for the first time', async () => {
      const { fixture, room } = await enterRoom();
      assert.deepEqual(await formerExtremities(fixture, room), []);
      await fixture.say(alice, room.roomId, 'hello');
      assert.deepEqual(await formerExtremities(await fixture.restart(open), room), []);
    });

    it('contain the extremities before the room was entered again, including local events, also after a restart', async () => {
      const { fixture, room } = await enterRoom();
      const { placement } = fixture.engine;
      const messageId = await fixture.say(alice, room.roomId, 'this event reaches no other server');
      const kick = room.member(alice, 'leave', { sender: ann });
      await placement.place(room.roomId, room.get(kick));
      assert.deepEqual((await forwardExtremities(fixture, room))?.sort(), [messageId, kick].sort());
      assert.deepEqual(await formerExtremities(fixture, room), [], 'no extremity has been replaced yet');
      const back = await enterAgain(fixture, room, [kick]);
      assert.deepEqual(await forwardExtremities(fixture, room), [back]);
      assert.deepEqual((await formerExtremities(fixture, room)).sort(), [messageId, kick].sort());
      const restarted = await fixture.restart(open);
      assert.deepEqual((await formerExtremities(restarted, room)).sort(), [messageId, kick].sort());
      await restarted.say(alice, room.roomId, 'a later message');
      assert.deepEqual((await formerExtremities(restarted, room)).sort(), [messageId, kick].sort());
    });

    it('grow each time the room is entered again, oldest first', async () => {
      const { fixture, room } = await enterRoom();
      const kicks: string[] = [];
      let tested = fixture;
      let last = room.forwardExtremities;
      for (let time = 0; time < 3; time++) {
        const kick = room.member(alice, 'leave', { sender: ann, prev: last });
        await tested.engine.placement.place(room.roomId, room.get(kick));
        kicks.push(kick);
        last = [await enterAgain(tested, room, [kick])];
        tested = await tested.restart(open);
        assert.deepEqual(await formerExtremities(tested, room), kicks);
      }
    });

    it('contain at most the newest two hundred extremities', async () => {
      const { fixture, room } = await enterRoom();
      const { placement } = fixture.engine;
      const expected: string[] = [];
      let last = room.forwardExtremities;
      for (let time = 0; time < 2; time++) {
        const start = last;
        for (let index = 0; index < 110; index++) {
          await placement.place(room.roomId, room.get(room.say(ben, start)));
        }
        const kick = room.member(alice, 'leave', { sender: ann, prev: start });
        await placement.place(room.roomId, room.get(kick));
        const nids = (await fixture.engine.heads.get(room.roomId))?.extremities.map(({ nid }) => nid) ?? [];
        assert.equal(nids.length, 111);
        const events = await fixture.engine.events.getMany(nids);
        expected.push(...nids.map((nid) => events.get(nid)?.event.eventId ?? ''));
        last = [await enterAgain(fixture, room, [kick])];
      }
      assert.deepEqual(await formerExtremities(fixture, room), expected.slice(-200));
      assert.deepEqual(await formerExtremities(await fixture.restart(open), room), expected.slice(-200));
    });

    it('stay the same when entering the room fails', async () => {
      const { fixture, room } = await enterRoom();
      const kick = room.member(alice, 'leave', { sender: ann });
      await fixture.engine.placement.place(room.roomId, room.get(kick));
      const { state, ...entry } = room.join(alice, [kick]);
      const [, ...stateWithoutCreate] = state;
      const failing = fixture.engine.placement.enter(room.room, {
        ...entry,
        state: stateWithoutCreate,
        authChain: [],
      });
      await assert.rejects(failing);
      assert.deepEqual(await formerExtremities(fixture, room), []);
      assert.deepEqual(await forwardExtremities(fixture, room), [kick]);
    });
  });
});
