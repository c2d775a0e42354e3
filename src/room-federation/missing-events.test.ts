import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { alice } from '../../test/support/rooms/rooms.ts';
import type { JsonObject } from '../protocol/index.ts';
import { creator, joinedRoom, remoteBob } from './test/joined-room.ts';

type Peers = Awaited<ReturnType<typeof joinedRoom>>['peers'];

/** Takes down all other servers except c.example, which does not know one event and returns no missing events. */
function lackStateAt(peers: Peers, unknownId: string): void {
  const { stateIds } = peers.events;
  peers.scripts.set('c.example', {
    missingEvents: async () => [],
    stateIds: async (_server, roomId, eventId, request) => {
      if (eventId === unknownId) throw new Error('this event is not known');
      return stateIds('honest.example', roomId, eventId, request);
    },
  });
  peers.down.add('a.example').add('b.example');
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('Incoming fetches missing events and states before it places an event', () => {
    it('fetches the events of a gap with get_missing_events', async () => {
      const { room, peers, send, statuses, join } = await joinedRoom(open);
      const between = Array.from({ length: 55 }, (_, index) => room.say(creator, `${index}`));
      const last = room.say(remoteBob, 'last');
      await send('b.example', last);
      assert.deepEqual(new Set(await statuses(...between, last)), new Set(['placed']));
      assert.equal(peers.count('stateIds'), 0);
      assert.ok(peers.count('missingEvents') <= 4, `${peers.count('missingEvents')} requests`);
      const [first] = peers.receivedRequests;
      assert.deepEqual(first?.args[2], { earliest: [join], latest: [last], limit: 20, minDepth: 0 });
      assert.equal(first?.server, 'b.example', 'the server that sent the event receives the first request');
    });

    it('fetches the state before an event when get_missing_events does not fill the gap before it', async () => {
      const { room, peers, send, statuses, fixture } = await joinedRoom(open);
      for (let index = 0; index < 10; index++) room.say(creator, 'lost');
      const topic = room.add({
        type: 'm.room.topic',
        sender: creator,
        stateKey: '',
        content: { topic: 'new' },
      });
      const carol = room.join('@carol:c.example');
      const last = room.say('@carol:c.example', 'hello');
      peers.scripts.set('c.example', { missingEvents: async () => [] });
      peers.down.add('a.example').add('b.example');
      await send('c.example', last);
      assert.deepEqual(await statuses(last, topic, carol), ['placed', 'outlier', 'outlier']);
      assert.equal(peers.count('state'), 0, 'few events are fetched one by one');
      const head = await fixture.engine.heads.get(room.roomId);
      assert.equal(head?.entry('m.room.topic', '')?.eventId, topic);
      assert.equal(head?.membership('@carol:c.example'), 'join');
      assert.equal(head?.membership(alice), 'join');
    });

    it('requests the state at the missing previous event and not at the event itself', async () => {
      const { room, peers, send, statuses, fixture } = await joinedRoom(open);
      const topic = room.add({
        type: 'm.room.topic',
        sender: creator,
        stateKey: '',
        content: { topic: 'new' },
      });
      const carol = room.join('@carol:c.example');
      const last = room.say('@carol:c.example', 'hello');
      lackStateAt(peers, last);
      await send('c.example', last);
      assert.deepEqual(await statuses(last, topic, carol), ['placed', 'outlier', 'outlier']);
      const stateRequests = peers.receivedRequests.filter(
        ({ method, server }) => method === 'stateIds' && server === 'c.example',
      );
      assert.deepEqual(
        stateRequests.map(({ args }) => args[2]),
        [carol],
      );
      assert.equal(peers.count('eventAuth'), 0);
      const head = await fixture.engine.heads.get(room.roomId);
      assert.equal(head?.entry('m.room.topic', '')?.eventId, topic);
      assert.equal(head?.membership('@carol:c.example'), 'join');
    });

    it('requests the state at the event itself at the seventh attempt, about two hours after the event arrived', async () => {
      const { room, peers, send, statuses, fixture } = await joinedRoom(open);
      const carol = room.join('@carol:c.example');
      const last = room.say('@carol:c.example', 'hello');
      lackStateAt(peers, carol);
      await send('c.example', last);
      for (let minutes = 0; minutes < 130; minutes++) {
        if (minutes === 115) assert.deepEqual(await statuses(last), ['unknown']);
        fixture.clock.advance(60_000);
        await fixture.rooms.incoming.settled();
      }
      assert.deepEqual(await statuses(last), ['placed']);
    });

    it('sends a request to a server again at once when the server sends another event, although it has just returned no missing events', async () => {
      const { room, peers, send, statuses } = await joinedRoom(open);
      room.say(creator, 'lost');
      const first = room.say(creator, 'first');
      const second = room.say(creator, 'second');
      const refuse = () => Promise.reject(new Error('M_FORBIDDEN'));
      peers.scripts.set('a.example', { missingEvents: async () => [], stateIds: refuse });
      peers.down.add('b.example');
      await send('a.example', first);
      assert.deepEqual(await statuses(first), ['unknown']);
      peers.scripts.clear();
      await send('a.example', second);
      assert.deepEqual(await statuses(first, second), ['placed', 'placed']);
    });

    it('fetches the whole state when much of it is missing', async () => {
      const { room, peers, send, statuses, fixture } = await joinedRoom(open);
      for (let index = 0; index < 600; index++) room.join(`@user${index}:c.example`);
      const last = room.say(creator, 'last');
      peers.scripts.set('a.example', { missingEvents: async () => [] });
      peers.down.add('b.example');
      await send('a.example', last);
      assert.deepEqual(await statuses(last), ['placed']);
      assert.equal(peers.count('state'), 1);
      assert.equal(peers.count('event'), 1, 'the previous event itself');
      const head = await fixture.engine.heads.get(room.roomId);
      assert.equal(head?.memberCount('join'), 603);
    });

    it('places an event after some hours with a state that lacks the events whose keys cannot be fetched', async () => {
      const { room, peers, send, statuses, fixture } = await joinedRoom(open);
      const lost = Array.from({ length: 15 }, (_, index) => room.join(`@user${index}:gone.example`));
      const carol = room.join('@carol:c.example');
      const last = room.say('@carol:c.example', 'hello');
      room.keys.delete('gone.example');
      peers.scripts.set('c.example', { missingEvents: async () => [] });
      peers.down.add('a.example').add('b.example');
      await send('c.example', last);
      for (let minutes = 0; minutes < 30; minutes++) {
        fixture.clock.advance(60_000);
        await fixture.rooms.incoming.settled();
      }
      assert.deepEqual(await statuses(last), ['unknown'], 'the keys may be there soon');
      for (let minutes = 0; minutes < 240; minutes += 10) {
        fixture.clock.advance(10 * 60_000);
        await fixture.rooms.incoming.settled();
      }
      assert.deepEqual(await statuses(last, carol, lost[0]!), ['placed', 'outlier', 'unknown']);
      const head = await fixture.engine.heads.get(room.roomId);
      assert.deepEqual([head?.memberCount('join'), head?.membership(alice)], [4, 'join']);
    });

    it('does not place a join accepted by another server until the key of a missing member in the state before the join can be fetched', async () => {
      const { room, fixture, statuses } = await joinedRoom(open);
      // A state that lacks a tenth of its events is usable when no server provides the missing events.
      for (let index = 0; index < 12; index++) room.join(`@user${index}:b.example`);
      const carol = room.join('@carol:gone.example');
      room.join('@dora:gone.example');
      const key = room.key('gone.example');
      room.keys.delete('gone.example');
      const bob = room.join('@bob:test');
      await assert.rejects(fixture.rooms.incoming.process(room.roomId, 'a.example', room.get(bob)), {
        name: 'FetchFailed',
      });
      await fixture.rooms.incoming.settled();
      assert.deepEqual(await statuses(bob), ['unknown']);
      room.keys.set('gone.example', key);
      fixture.clock.advance(60_000);
      await fixture.rooms.incoming.settled();
      assert.deepEqual(await statuses(bob, carol), ['placed', 'placed']);
      const head = await fixture.engine.heads.get(room.roomId);
      const memberships = ['@carol:gone.example', '@dora:gone.example', '@bob:test'].map((user) =>
        head?.membership(user),
      );
      assert.deepEqual(memberships, ['join', 'join', 'join']);
    });

    it('does not place an older event while the state before it lacks an entry whose key cannot be fetched', async () => {
      const carol = '@carol:gone.example';
      const { room, fixture, statuses } = await joinedRoom(open, {
        prepare: (room) => {
          const set = (sender: string, type: string, content: JsonObject) =>
            room.add({ type, sender, stateKey: '', content });
          set(creator, 'm.room.power_levels', { users: { [creator]: 100 }, state_default: 0 });
          for (let index = 0; index < 10; index++) room.join(`@user${index}:b.example`);
          room.join(carol);
          // A later event replaces this topic, so that only the states before older events contain it.
          set(carol, 'm.room.topic', { topic: 'first' });
          for (let index = 0; index < 30; index++) room.say(creator, `message ${index}`);
          set(creator, 'm.room.topic', { topic: 'second' });
        },
      });
      const { incoming } = fixture.rooms;
      const older = room.get(room.newest).event.prevEventIds;
      const key = room.key('gone.example');
      room.keys.delete('gone.example');
      await incoming.backfill(room.roomId, older, 20);
      await incoming.settled();
      assert.deepEqual(await statuses(...older), ['outlier']);
      room.keys.set('gone.example', key);
      fixture.clock.advance(10 * 60_000);
      await incoming.backfill(room.roomId, older, 20);
      assert.deepEqual(await statuses(...older), ['older']);
      const [topic] = [...room.events.values()].filter(({ event }) => event.type === 'm.room.topic');
      assert.deepEqual(await statuses(topic!.event.eventId), ['outlier']);
    });
  });
});
