import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { newSigningKey } from '../../test/support/inputs/signing-key.ts';
import { alice } from '../../test/support/rooms/rooms.ts';
import type { JsonObject } from '../protocol/index.ts';
import { creator, joinedRoom, remoteBob } from './test/joined-room.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('Incoming.receive', () => {
    it('places complete events without requests in every room version', async () => {
      for (const version of ['1', '2', '3', '6', '10', '11', '12']) {
        const { room, peers, send, statuses } = await joinedRoom(open, { version });
        const one = room.say(creator, 'one');
        const two = room.say(remoteBob, 'two');
        assert.deepEqual(await send('a.example', one, two), { [one]: undefined, [two]: undefined });
        assert.deepEqual(await statuses(one, two), ['placed', 'placed'], version);
        assert.deepEqual(peers.receivedRequests, [], version);
      }
    });

    it('places events that arrive in the wrong order after their previous events', async () => {
      const { room, peers, send, statuses, stored } = await joinedRoom(open);
      const ids = ['a', 'b', 'c', 'd'].map((text) => room.say(creator, text));
      await send('a.example', ...ids.toReversed());
      assert.deepEqual(
        await statuses(...ids),
        ids.map(() => 'placed'),
      );
      const places = await Promise.all(ids.map(async (id) => (await stored(id))?.stream ?? 0));
      assert.deepEqual(
        places,
        places.toSorted((a, b) => a - b),
      );
      assert.equal(peers.count('missingEvents'), 0);
    });

    it('accepts known and staged events again without writing', async () => {
      const { room, fixture, send } = await joinedRoom(open);
      const id = room.say(creator, 'once');
      await send('a.example', id);
      const { batches } = fixture.database.statistics;
      assert.deepEqual(await send('b.example', id, id), { [id]: undefined });
      assert.equal(fixture.database.statistics.batches, batches);
    });

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
      assert.equal(first?.server, 'b.example', 'the server that sent the event is asked first');
    });

    it('fetches the state before an event behind a gap that is too wide', async () => {
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

    it('asks for the state at the missing previous event and not at the event itself', async () => {
      const { room, peers, send, statuses, fixture } = await joinedRoom(open);
      const topic = room.add({
        type: 'm.room.topic',
        sender: creator,
        stateKey: '',
        content: { topic: 'new' },
      });
      const carol = room.join('@carol:c.example');
      const last = room.say('@carol:c.example', 'hello');
      const { stateIds } = peers.events;
      peers.scripts.set('c.example', {
        missingEvents: async () => [],
        stateIds: async (_server, roomId, eventId, request) => {
          if (eventId === last) throw new Error('this event is not known');
          return stateIds('honest.example', roomId, eventId, request);
        },
      });
      peers.down.add('a.example').add('b.example');
      await send('c.example', last);
      assert.deepEqual(await statuses(last, topic, carol), ['placed', 'outlier', 'outlier']);
      const asked = peers.receivedRequests.filter(
        ({ method, server }) => method === 'stateIds' && server === 'c.example',
      );
      assert.deepEqual(
        asked.map(({ args }) => args[2]),
        [carol],
      );
      assert.equal(peers.count('eventAuth'), 0);
      const head = await fixture.engine.heads.get(room.roomId);
      assert.equal(head?.entry('m.room.topic', '')?.eventId, topic);
      assert.equal(head?.membership('@carol:c.example'), 'join');
    });

    it('asks a server again at once when it sends another event after a response that did not help', async () => {
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

    it('places an event after some hours without state events whose keys cannot be fetched', async () => {
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

    it('does not place an accepted join while the state before it lacks a member whose key cannot be fetched, and places it later', async () => {
      const { room, fixture, statuses } = await joinedRoom(open);
      // A state that lacks a tenth of its events is usable when no server provides the rest.
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
          // The later state has another topic, so that this one is known from the state before older events only.
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

    it('drops forged events and accepts others', async () => {
      const { room, send, statuses } = await joinedRoom(open);
      const forged = room.say(creator, 'forged', { key: newSigningKey('k') });
      const good = room.say(creator, 'good', { prev: room.get(forged).event.prevEventIds });
      const errors = await send('a.example', forged, good);
      assert.match(errors[forged] ?? '', /signature/);
      assert.equal(errors[good], undefined);
      assert.deepEqual(await statuses(forged, good), ['unknown', 'placed']);
    });

    it('redacts events with a wrong hash', async () => {
      const { room, fixture, stored } = await joinedRoom(open);
      const id = room.say(creator, 'as it was');
      const changed = { ...room.pdu(id), content: { body: 'as it never was', msgtype: 'm.text' } };
      await fixture.rooms.incoming.receive('a.example', [changed]);
      await fixture.rooms.incoming.settled();
      assert.deepEqual((await stored(id))?.event.content, {});
      assert.notEqual((await stored(id))?.stream, undefined);
    });

    it('refuses events of rooms without local users', async () => {
      const { room, fixture, send, statuses } = await joinedRoom(open);
      const strange = { ...room.pdu(room.newest), room_id: '!unknown:a.example', event_id: '$x:a.example' };
      const { incoming } = fixture.rooms;
      assert.deepEqual(await incoming.receive('a.example', [strange, null, 5, { room_id: [] }]), {
        '$x:a.example': { error: 'This server is not in the room' },
      });
      await fixture.leave(alice, room.roomId);
      const id = room.say(creator, 'hello?');
      assert.match((await send('a.example', id))[id] ?? '', /not in the room/);
      assert.deepEqual(await statuses(id), ['unknown']);
    });

    it('refuses events from servers that the server ACL denies', async () => {
      const { room, send, statuses } = await joinedRoom(open);
      const acl = room.add({
        type: 'm.room.server_acl',
        sender: creator,
        stateKey: '',
        content: { allow: ['*'], deny: ['b.example'] },
      });
      await send('a.example', acl);
      const id = room.say(remoteBob, 'let me in');
      assert.match((await send('b.example', id))[id] ?? '', /does not admit/);
      assert.deepEqual(await statuses(id), ['unknown']);
    });

    it('rejects or soft-fails unauthorized events without an error for the sending server', async () => {
      const { room, send, statuses, fixture } = await joinedRoom(open);
      const before = room.newest;
      const content = { topic: 'mine' };
      const topic = room.add({ type: 'm.room.topic', sender: remoteBob, stateKey: '', content });
      const ban = room.add({
        type: 'm.room.member',
        sender: creator,
        stateKey: remoteBob,
        content: { membership: 'ban' },
        prev: [before],
      });
      const evading = room.say(remoteBob, 'still here', { prev: [before] });
      assert.deepEqual(await send('b.example', topic), { [topic]: undefined });
      await send('a.example', ban);
      assert.deepEqual(await send('b.example', evading), { [evading]: undefined });
      assert.deepEqual(await statuses(topic, ban, evading), ['rejected', 'placed', 'soft-failed']);
      const head = await fixture.engine.heads.get(room.roomId);
      assert.equal(head?.entry('m.room.topic', ''), undefined);
      assert.deepEqual(
        head?.extremities.map(({ eventId }) => eventId),
        [ban],
      );
    });

    it('processes staged events after a restart', async () => {
      const joined = await joinedRoom(open);
      const { room, peers, send, statuses } = joined;
      room.say(creator, 'lost');
      const last = room.say(creator, 'last');
      peers.down.add('a.example').add('b.example');
      await send('a.example', last);
      assert.deepEqual(await statuses(last), ['unknown']);
      peers.down.clear();
      const again = await joined.restart();
      again.fixture.clock.advance(60_000);
      again.fixture.rooms.incoming.start();
      await again.fixture.rooms.incoming.settled();
      assert.deepEqual(await again.statuses(last), ['placed']);
    });

    it('places events that arrive during shutdown after the next start', async () => {
      const joined = await joinedRoom(open);
      const { room, fixture } = joined;
      const ids = ['a', 'b', 'c'].map((text) => room.say(creator, text));
      const received = fixture.rooms.incoming.receive('a.example', room.pdus(ids));
      const closed = fixture.rooms.incoming.close();
      assert.deepEqual(Object.keys(await received), ids);
      await closed;
      const again = await joined.restart();
      assert.ok(
        (await again.statuses(...ids)).includes('unknown'),
        'some were not placed before the restart',
      );
      again.fixture.rooms.incoming.start();
      await again.fixture.rooms.incoming.settled();
      assert.deepEqual(await again.statuses(...ids), ['placed', 'placed', 'placed']);
    });

    it('places events that arrive together with few flushes', async () => {
      const { room, fixture, send, statuses } = await joinedRoom(open);
      const ids = Array.from({ length: 50 }, (_, index) => room.say(creator, `${index}`));
      const { batches } = fixture.database.statistics;
      await send('a.example', ...ids);
      assert.deepEqual(new Set(await statuses(...ids)), new Set(['placed']));
      assert.ok(
        fixture.database.statistics.batches - batches <= 55,
        'all are removed from the queue in one batch',
      );
    });

    it('places an event as soon as its missing previous event is placed', async () => {
      const { room, peers, send, statuses } = await joinedRoom(open);
      const missing = room.say(creator, 'missing');
      const next = room.say(creator, 'next');
      const last = room.say(remoteBob, 'last');
      peers.down.add('a.example').add('b.example');
      await send('a.example', last);
      await send('b.example', next);
      assert.deepEqual(await statuses(next, last), ['unknown', 'unknown']);
      await send('a.example', missing);
      assert.deepEqual(await statuses(missing, next, last), ['placed', 'placed', 'placed']);
    });

    it('places an event as soon as its missing auth event is placed', async () => {
      const { room, peers, send, statuses } = await joinedRoom(open);
      const name = room.join(remoteBob, { content: { membership: 'join', displayname: 'Bob' } });
      const message = room.say(remoteBob, 'I am Bob');
      peers.down.add('a.example').add('b.example');
      await send('b.example', message);
      assert.deepEqual(await statuses(message), ['unknown']);
      const asked = peers.receivedRequests.length;
      const other = room.say(creator, 'another', { prev: [room.get(name).event.prevEventIds[0]!] });
      await send('a.example', other);
      assert.deepEqual(await statuses(other, message), ['placed', 'unknown']);
      assert.equal(peers.receivedRequests.length, asked, 'other events do not cause another attempt');
      await send('b.example', name);
      assert.deepEqual(await statuses(name, message), ['placed', 'placed']);
    });

    it('retries an event while no server is reachable, and drops it after the last attempt', async () => {
      const { room, peers, send, statuses, fixture } = await joinedRoom(open);
      room.say(creator, 'lost');
      const last = room.say(creator, 'last');
      peers.down.add('a.example').add('b.example');
      await send('a.example', last);
      const asked = peers.receivedRequests.length;
      assert.ok(asked > 0);
      for (let minutes = 0; minutes < 24 * 60; minutes += 10) {
        fixture.clock.advance(10 * 60_000);
        await fixture.rooms.incoming.settled();
      }
      const all = peers.receivedRequests.length;
      assert.ok(all > asked && all < asked * 12, `${all} requests, ${asked} at first`);
      peers.down.clear();
      fixture.clock.advance(24 * 3_600_000);
      await fixture.rooms.incoming.settled();
      assert.deepEqual(await statuses(last), ['unknown']);
      assert.equal(peers.receivedRequests.length, all);
    });
  });
});
