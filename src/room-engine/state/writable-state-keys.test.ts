import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { ann, ReferenceRoom } from '../../../test/support/rooms/reference-room.ts';
import { alice, bob, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { getRoomVersion, stateMapKey } from '../../protocol/index.ts';

const version = getRoomVersion('10')!;

/** Returns the first events of a room by `alice`, and further state events by `sender`. */
function firstEvents(count: number, sender = alice) {
  const create = {
    type: 'm.room.create',
    sender: alice,
    stateKey: '',
    content: { room_version: '10', creator: alice },
  };
  const join = { type: 'm.room.member', sender: alice, stateKey: alice, content: { membership: 'join' } };
  const stateEvents = Array.from({ length: count }, (_, index) => ({
    type: 'org.example.state',
    sender,
    stateKey: `key ${index}`,
    content: {},
  }));
  return [create, join, ...stateEvents] as const;
}

const keysOf = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => stateMapKey('org.example.state', `${prefix}${index}`));

forSelectedDatabases(import.meta.url, (open) => {
  describe('the nids of new state keys (WritableStateKeys)', () => {
    it('allocates nids for 30,000 keys at once, while rooms are created', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { stateKeys } = fixture.engine;
      const [nidsByKey] = await stateKeys.attempt(() =>
        Promise.all([
          stateKeys.prepareMany(keysOf('a', 30_000)),
          fixture.room(alice, bob),
          stateKeys.prepareMany(keysOf('b', 12_000)),
        ]),
      );
      assert.equal(new Set(nidsByKey.values()).size, 30_000);
      await fixture.say(alice, await fixture.room(alice, bob), 'afterwards');
    });

    it('forgets the keys of rooms that could not be created', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { stateKeys, timeline } = fixture.engine;
      const roomId = '!never:test';
      await assert.rejects(timeline.create(version, roomId, firstEvents(300, bob)), {
        errcode: 'M_FORBIDDEN',
      });
      assert.equal(stateKeys.unsavedCount, 0);
      assert.equal(stateKeys.peek(stateMapKey('org.example.state', 'key 1')), undefined);
      await timeline.create(version, '!created:test', firstEvents(300));
      assert.equal(stateKeys.unsavedCount, 0);
      const restarted = await fixture.restart(open);
      assert.equal((await restarted.engine.heads.get('!created:test'))?.state.size, 302);
    });

    it('forgets the keys of refused state events, and stores the keys of accepted events that are sent at the same time', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { stateKeys, timeline } = fixture.engine;
      const roomId = await fixture.room(alice, bob);
      const send = (sender: string, index: number) =>
        timeline.append(roomId, {
          type: 'org.example.state',
          sender,
          stateKey: `${index % 2_000}`,
          content: { index },
        });
      const sent = Array.from({ length: 4_000 }, (_, index) => send(index < 2_500 ? bob : alice, index));
      const results = await Promise.allSettled(sent);
      assert.equal(results.filter(({ status }) => status === 'rejected').length, 2_500);
      assert.equal(stateKeys.unsavedCount, 0);
      const before = (await fixture.engine.heads.get(roomId))?.state.size;
      const restarted = await fixture.restart(open);
      const head = await restarted.engine.heads.get(roomId);
      assert.equal(head?.state.size, before);
      for (let index = 2_500; index < 4_000; index++) {
        assert.ok(head?.entry('org.example.state', `${index % 2_000}`), `entry ${index}`);
      }
    });

    it('forgets the state key of an event template that a remote server requested', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const { stateKeys, placement } = fixture.engine;
      const joiner = '@joiner:elsewhere.example';
      await placement.eventTemplate(roomId, {
        type: 'm.room.member',
        sender: joiner,
        stateKey: joiner,
        content: { membership: 'join' },
      });
      assert.equal(stateKeys.unsavedCount, 0);
      assert.equal(stateKeys.peek(stateMapKey('m.room.member', joiner)), undefined);
    });

    it('forgets the state key of a remote event that is refused, and keeps the state key of an accepted one', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const room = new ReferenceRoom();
      const { placement, stateKeys } = fixture.engine;
      await placement.enter(room.room, room.join(alice));
      const stranger = '@stranger:d.example';
      const draft = { type: 'org.example.state', sender: stranger, stateKey: 'x', content: {} };
      await assert.rejects(placement.place(room.roomId, room.get(room.add(draft)), { refuse: true }), {
        errcode: 'M_FORBIDDEN',
      });
      await placement.place(room.roomId, room.get(room.add({ ...draft, sender: ann, stateKey: 'y' })));
      assert.equal(stateKeys.unsavedCount, 0);
      assert.equal(stateKeys.peek(stateMapKey('org.example.state', 'x')), undefined);
      assert.ok(stateKeys.peek(stateMapKey('org.example.state', 'y')));
    });
  });
});
