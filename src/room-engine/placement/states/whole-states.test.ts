import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { clockReadsDuring, fastClock } from '../../../../test/support/clocks/fast-clock.ts';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { ann, ReferenceRoom } from '../../../../test/support/rooms/reference-room.ts';
import { alice, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';

/** A room with many members, of several servers. */
function largeRoom(members: number): ReferenceRoom {
  const room = new ReferenceRoom();
  for (let index = 0; index < members; index++) room.member(`@user${index}:s${index % 5}.example`, 'join');
  return room;
}

const isMember = ({ event }: { readonly event: { readonly type: string } }) => event.type === 'm.room.member';

forSelectedDatabases(import.meta.url, (open) => {
  const openFixture = async () => {
    const clock = fastClock();
    return { clock, fixture: await RoomsUnderTest.open(open, [], { clock }) };
  };

  const joinWithPartialState = async (fixture: RoomsUnderTest, room: ReferenceRoom) => {
    const { event, state, authChain } = room.join(alice);
    const essential = state.filter((verified) => !isMember(verified));
    const needed = [event, ...essential].flatMap((verified) => verified.event.authEventIds);
    const chain = room.stateAndAuthChain(new Map(needed.map((id) => [id, id])));
    await fixture.engine.placement.enter(room.room, {
      event,
      state: essential,
      authChain: [...chain.state, ...chain.authChain],
      partial: { servers: ['a.example'], from: 'a.example' },
    });
    await fixture.engine.placement.addOutliers(room.room, [...authChain, ...state]);
    return state.map((verified) => verified.event.eventId);
  };

  const rename = async (fixture: RoomsUnderTest, room: ReferenceRoom, displayname: string) => {
    const content = { membership: 'join', displayname };
    const draft = { type: 'm.room.member', sender: alice, stateKey: alice, content };
    return (await fixture.engine.timeline.append(room.roomId, draft)).event.eventId;
  };

  const check = async (fixture: RoomsUnderTest, room: ReferenceRoom) => {
    const head = await fixture.engine.heads.get(room.roomId);
    assert.ok(head);
    const expected = room.stateAfter(head.extremities.map(({ eventId }) => eventId));
    const state = [...head.state].map(([key, { eventId }]) => [key, eventId]).sort();
    assert.deepEqual(state, [...expected].sort());
    const joined = [...head.members].filter(([, membership]) => membership === 'join').length;
    assert.equal(joined, head.memberCount('join'));
    assert.equal(
      [...head.servers.values()].reduce((sum, count) => sum + count, 0),
      joined,
    );
    const group = await fixture.engine.groups.load(head.chain.id ?? 0);
    assert.deepEqual([...group.values()].sort(), Array.from(head.state.values(), ({ nid }) => nid).sort());
  };

  describe('a large room whose whole state is replaced', () => {
    it('yields to other work while a large room is entered, completed or loaded, more often for a larger state', async () => {
      const counts: Record<'enter' | 'complete' | 'load', number>[] = [];
      for (const members of [20, 420]) {
        const [room, partialRoom] = [largeRoom(members), largeRoom(members)];
        const { clock, fixture } = await openFixture();
        const enter = await clockReadsDuring(clock, () =>
          fixture.engine.placement.enter(room.room, room.join(alice)),
        );
        await check(fixture, room);
        const ids = await joinWithPartialState(fixture, partialRoom);
        const complete = await clockReadsDuring(clock, () =>
          fixture.engine.placement.completeState(partialRoom.roomId, { stateBefore: ids }),
        );
        await check(fixture, partialRoom);
        const restarted = await fixture.restart(open, { clock });
        const load = await clockReadsDuring(clock, () => restarted.engine.heads.get(room.roomId));
        await check(restarted, room);
        counts.push({ enter, complete, load });
      }
      const [few, many] = counts;
      assert.ok(few && many);
      // Each step of the work pauses after every fifty or hundred of the 400 further members.
      assert.ok(many.enter - few.enter >= 80, `${few.enter} and ${many.enter}`);
      assert.ok(many.complete - few.complete >= 80, `${few.complete} and ${many.complete}`);
      assert.ok(many.load - few.load >= 8, `${few.load} and ${many.load}`);
    });

    it('completes the partial state of a large room while local users send events and change state', async () => {
      const room = largeRoom(150);
      const { fixture } = await openFixture();
      const ids = await joinWithPartialState(fixture, room);
      const sent: Promise<string>[] = [];
      const completing = fixture.engine.placement.completeState(room.roomId, { stateBefore: ids });
      let isDone = false;
      const done = completing.finally(() => {
        isDone = true;
      });
      for (let turn = 0; !isDone && sent.length < 40; turn++) {
        if (turn % 7 === 0) sent.push(fixture.say(alice, room.roomId, `turn ${turn}`));
        if (turn === 21 || turn === 42) {
          sent.push(rename(fixture, room, `Alice ${turn}`));
        }
        await new Promise(setImmediate);
      }
      await done;
      assert.ok(sent.length > 4);
      const events = await fixture.engine.events.getManyById(await Promise.all(sent));
      const sentInOrder = [...events.values()].sort((a, b) => a.event.depth - b.event.depth);
      for (const { event } of sentInOrder) room.addExisting({ event, json: '' });
      await check(fixture, room);
      const head = await fixture.engine.heads.get(room.roomId);
      assert.equal(head?.isPartial, false);
      assert.deepEqual(
        head?.extremities.map(({ eventId }) => eventId),
        [sentInOrder.at(-1)?.event.eventId],
      );
      for (const stored of sentInOrder) {
        const state = await fixture.engine.stateAt(stored, 'after');
        const expected = room.stateAfter([stored.event.eventId]);
        assert.deepEqual([...(state?.keys() ?? [])].sort(), [...expected.keys()].sort());
      }
      await check(await fixture.restart(open), room);
    });

    it('stores a supplied state correctly when a local user changes the current state meanwhile', async () => {
      const room = largeRoom(150);
      const { fixture } = await openFixture();
      await fixture.engine.placement.enter(room.room, room.join(alice));
      const unreceived = room.member('@late:s1.example', 'join');
      const last = room.say(ann, [unreceived]);
      const state = [...room.stateBefore(last).values()];
      await fixture.engine.placement.addOutliers(room.room, [room.get(unreceived)]);
      const placing = fixture.engine.placement.place(room.roomId, room.get(last), { stateBefore: state });
      const renamed = rename(fixture, room, 'Alice');
      const stored = await placing;
      assert.deepEqual([stored.rejected, stored.softFailed], [false, false]);
      const storedRename = await fixture.engine.events.getById(await renamed);
      assert.ok(storedRename);
      room.addExisting({ event: storedRename.event, json: '' });
      await check(fixture, room);
      const before = await fixture.engine.stateAt(stored, 'before');
      assert.equal(before?.size, state.length);
      await check(await fixture.restart(open), room);
    });
  });
});
