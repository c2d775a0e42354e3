import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { ben, cat, ReferenceRoom } from '../../../../test/support/rooms/reference-room.ts';
import { alice, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { EventFanOut } from './event-fan-out.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('EventFanOut', () => {
    /** A room that alice joined without its members; `complete` supplies them. */
    async function partialRoom() {
      const fixture = await RoomsUnderTest.open(open);
      const { engine, streams } = fixture;
      const delivered: [type: string, destinations: string[]][] = [];
      const fanOut = new EventFanOut({
        serverName: 'test',
        caches: fixture.caches,
        engine,
        streams,
        isDestination: () => true,
        deliver: ({ json }, destinations) =>
          void delivered.push([(JSON.parse(json) as { type: string }).type, [...destinations].sort()]),
      });
      const room = new ReferenceRoom();
      room.member(cat, 'join');
      const joinedAt = streams.current;
      const { event, state, authChain } = room.join(alice);
      const isMember = (one: (typeof state)[number]) => one.event.type === 'm.room.member';
      await engine.placement.enter(room.room, {
        event,
        state: state.filter((one) => !isMember(one)),
        authChain: [...authChain, ...state.filter((one) => isMember(one) && one.event.stateKey !== cat)],
        partial: { servers: ['a.example', 'gone.example'], from: 'a.example' },
      });
      const complete = async () => {
        await engine.placement.addOutliers(room.room, [...authChain, ...state]);
        const stateBefore = state.map((one) => one.event.eventId);
        await engine.placement.completeState(room.roomId, { stateBefore });
      };
      return { fixture, room, delivered, fanOut: () => fanOut.fanOut(joinedAt, streams.current), complete };
    }

    it('sends a leave from before the state was complete to all servers in the completed state', async () => {
      const { fixture, room, delivered, fanOut, complete } = await partialRoom();
      const leave = {
        type: 'm.room.member',
        sender: alice,
        stateKey: alice,
        content: { membership: 'leave' },
      };
      await fixture.engine.timeline.append(room.roomId, leave);
      await complete();
      await fanOut();
      const servers = [ben, cat].map((userId) => userId.split(':')[1]);
      assert.deepEqual(delivered, [['m.room.member', ['a.example', ...servers].sort()]]);
    });

    it('does not send the join that another server accepted', async () => {
      const { fixture, room, delivered, fanOut } = await partialRoom();
      await fixture.say(alice, room.roomId, 'hello');
      await fanOut();
      assert.deepEqual(delivered, [['m.room.message', ['a.example', 'gone.example']]]);
    });
  });
});
