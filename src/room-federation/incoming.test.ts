import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { newSigningKey } from '../../test/support/inputs/signing-key.ts';
import { alice } from '../../test/support/rooms/rooms.ts';
import { creator, joinedRoom, remoteBob } from './test/joined-room.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('Incoming.receive processes events of remote servers', () => {
    it('places complete events without requests in old and new room versions', async () => {
      for (const version of ['1', '2', '3', '6', '10', '11', '12']) {
        const { room, peers, send, statuses } = await joinedRoom(open, { version });
        const first = room.say(creator, 'one');
        const second = room.say(remoteBob, 'two');
        assert.deepEqual(await send('a.example', first, second), { [first]: undefined, [second]: undefined });
        assert.deepEqual(await statuses(first, second), ['placed', 'placed'], version);
        assert.deepEqual(peers.receivedRequests, [], version);
      }
    });

    it('places events that arrive in the wrong order, each after its previous events', async () => {
      const { room, peers, send, statuses, stored } = await joinedRoom(open);
      const ids = ['a', 'b', 'c', 'd'].map((text) => room.say(creator, text));
      await send('a.example', ...ids.toReversed());
      assert.deepEqual(
        await statuses(...ids),
        ids.map(() => 'placed'),
      );
      const positions = await Promise.all(ids.map(async (id) => (await stored(id))?.stream ?? 0));
      assert.deepEqual(
        positions,
        positions.toSorted((a, b) => a - b),
      );
      assert.equal(peers.count('missingEvents'), 0);
    });

    it('accepts repeated events again without writing to the database', async () => {
      const { room, fixture, send } = await joinedRoom(open);
      const id = room.say(creator, 'once');
      await send('a.example', id);
      const { batches } = fixture.database.statistics;
      assert.deepEqual(await send('b.example', id, id), { [id]: undefined });
      assert.equal(fixture.database.statistics.batches, batches);
    });

    it('drops forged events of a transaction and accepts its valid events', async () => {
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
      const unknownRoomEvent = {
        ...room.pdu(room.newest),
        room_id: '!unknown:a.example',
        event_id: '$x:a.example',
      };
      const { incoming } = fixture.rooms;
      assert.deepEqual(await incoming.receive('a.example', [unknownRoomEvent, null, 5, { room_id: [] }]), {
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
      const restarted = await joined.restart();
      restarted.fixture.clock.advance(60_000);
      restarted.fixture.rooms.incoming.start();
      await restarted.fixture.rooms.incoming.settled();
      assert.deepEqual(await restarted.statuses(last), ['placed']);
    });

    it('after the next start, places events that arrived during shutdown', async () => {
      const joined = await joinedRoom(open);
      const { room, fixture } = joined;
      const ids = ['a', 'b', 'c'].map((text) => room.say(creator, text));
      const received = fixture.rooms.incoming.receive('a.example', room.pdus(ids));
      const closed = fixture.rooms.incoming.close();
      assert.deepEqual(Object.keys(await received), ids);
      await closed;
      const restarted = await joined.restart();
      assert.ok(
        (await restarted.statuses(...ids)).includes('unknown'),
        'some were not placed before the restart',
      );
      restarted.fixture.rooms.incoming.start();
      await restarted.fixture.rooms.incoming.settled();
      assert.deepEqual(await restarted.statuses(...ids), ['placed', 'placed', 'placed']);
    });

    it('places 50 events of one transaction with at most 55 write batches', async () => {
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
      const renewedJoin = room.join(remoteBob, { content: { membership: 'join', displayname: 'Bob' } });
      const message = room.say(remoteBob, 'I am Bob');
      peers.down.add('a.example').add('b.example');
      await send('b.example', message);
      assert.deepEqual(await statuses(message), ['unknown']);
      const requestsBefore = peers.receivedRequests.length;
      const unrelated = room.say(creator, 'another', {
        prev: [room.get(renewedJoin).event.prevEventIds[0]!],
      });
      await send('a.example', unrelated);
      assert.deepEqual(await statuses(unrelated, message), ['placed', 'unknown']);
      assert.equal(
        peers.receivedRequests.length,
        requestsBefore,
        'other events do not cause another attempt',
      );
      await send('b.example', renewedJoin);
      assert.deepEqual(await statuses(renewedJoin, message), ['placed', 'placed']);
    });

    it('retries an event while no server is reachable, and drops it after the last attempt', async () => {
      const { room, peers, send, statuses, fixture } = await joinedRoom(open);
      room.say(creator, 'lost');
      const last = room.say(creator, 'last');
      peers.down.add('a.example').add('b.example');
      await send('a.example', last);
      const firstRequests = peers.receivedRequests.length;
      assert.ok(firstRequests > 0);
      for (let minutes = 0; minutes < 24 * 60; minutes += 10) {
        fixture.clock.advance(10 * 60_000);
        await fixture.rooms.incoming.settled();
      }
      const requestCount = peers.receivedRequests.length;
      // Six attempts like the first one, and four that also request the state at the event itself.
      assert.ok(
        requestCount > firstRequests && requestCount <= firstRequests * 12,
        `${requestCount} requests, ${firstRequests} at first`,
      );
      peers.down.clear();
      fixture.clock.advance(24 * 3_600_000);
      await fixture.rooms.incoming.settled();
      assert.deepEqual(await statuses(last), ['unknown']);
      assert.equal(peers.receivedRequests.length, requestCount);
    });
  });
});
