import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { mutated } from '../../test/support/inputs/mutated.ts';
import { newSigningKey } from '../../test/support/inputs/signing-key.ts';
import { runs } from '../../test/support/inputs/thoroughness.ts';
import { RemoteRoom } from '../../test/support/rooms/remote-room.ts';
import { creator, joinedRoom, remoteBob } from './test/joined-room.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('Incoming with responses of hostile servers', () => {
    it('bounds get_missing_events requests for an endless history, then fetches the state', async () => {
      const { room, peers, send, statuses } = await joinedRoom(open);
      const chain = Array.from({ length: 100 }, (_, index) => room.say(creator, `${index}`));
      const last = room.say(creator, 'last');
      peers.scripts.set('a.example', {
        async missingEvents(_server, _roomId, { latest }) {
          const [before = ''] = room.get(latest.at(-1)!).event.prevEventIds;
          return room.pdus([before]);
        },
      });
      peers.down.add('b.example');
      await send('a.example', last);
      assert.deepEqual(await statuses(last, chain.at(-1)!, chain[0]!), ['placed', 'placed', 'unknown']);
      assert.ok(peers.count('missingEvents') <= 15, String(peers.count('missingEvents')));
      assert.equal(peers.count('stateIds'), 1);
    });

    it('refuses unwanted, unrelated and forged events of a gap, and sends the request to the next server', async () => {
      const { room, peers, send, statuses } = await joinedRoom(open);
      const otherRoom = new RemoteRoom(creator.replace('creator', 'someone'));
      for (const [server, key] of room.keys) otherRoom.keys.set(server, key);
      const otherRoomEvent = otherRoom.say('@someone:a.example', 'of another room');
      const missing = room.say(creator, 'missing');
      const aside = room.say(remoteBob, 'aside', { prev: [missing] });
      const last = room.say(creator, 'last', { prev: [missing] });
      const forged = { ...room.pdu(missing), signatures: {} };
      peers.scripts.set('a.example', {
        missingEvents: async () => [
          forged,
          null,
          7,
          ...otherRoom.pdus([otherRoomEvent]),
          ...room.pdus([aside, last]),
        ],
        event: async () => forged,
      });
      await send('a.example', last);
      assert.deepEqual(await statuses(missing, last, aside, otherRoomEvent), [
        'placed',
        'placed',
        'unknown',
        'unknown',
      ]);
      assert.deepEqual(
        peers.receivedRequests.filter(({ method }) => method === 'missingEvents').map(({ server }) => server),
        ['a.example', 'b.example'],
      );
    });

    it('refuses a state that is mostly forged or of another room', async () => {
      const { room, peers, send, statuses, fixture } = await joinedRoom(open);
      room.say(creator, 'lost');
      const power = room.add({
        type: 'm.room.power_levels',
        sender: creator,
        stateKey: '',
        content: { users: { [remoteBob]: 100 } },
        key: newSigningKey('k'),
      });
      const otherRoom = new RemoteRoom('@someone:a.example');
      const last = room.say(creator, 'last');
      peers.scripts.set('a.example', {
        missingEvents: async () => [],
        async stateIds() {
          const state = [
            ...room.get(last).stateBefore.values(),
            ...otherRoom.get(otherRoom.newest).stateAfter.values(),
          ];
          return { state, authChain: [power, '$nothing'] };
        },
        event: async (_server, eventId) => (otherRoom.events.has(eventId) ? otherRoom : room).pdu(eventId),
      });
      peers.down.add('b.example');
      await send('a.example', last);
      assert.deepEqual(await statuses(last, power, otherRoom.newest), ['unknown', 'unknown', 'unknown']);
      const head = await fixture.engine.heads.get(room.roomId);
      assert.notEqual(head?.entry('m.room.power_levels', '')?.eventId, power);
    });

    it('keeps a banned user banned when a server makes up a state without the ban', async () => {
      const { room, peers, send, statuses, fixture } = await joinedRoom(open);
      const before = room.newest;
      const ban = room.add({
        type: 'm.room.member',
        sender: creator,
        stateKey: remoteBob,
        content: { membership: 'ban' },
      });
      await send('a.example', ban);
      room.newest = before;
      const madeUp = room.say(creator, 'never said', {
        prev: ['$nothing'],
        auth: [],
        key: newSigningKey('k'),
      });
      const evading = room.say(remoteBob, 'still here', {
        prev: [madeUp],
        auth: room.authEventsFor(before, remoteBob),
      });
      const state = [...room.get(before).stateAfter.values()];
      peers.scripts.set('b.example', {
        missingEvents: async () => [],
        stateIds: async () => ({ state, authChain: [...room.authChain(state)] }),
      });
      peers.down.add('a.example');
      await send('b.example', evading);
      assert.deepEqual(await statuses(evading), ['unknown'], 'the previous event may be available soon');
      for (let seconds = 0; seconds < 120; seconds += 10) {
        fixture.clock.advance(10_000);
        await fixture.rooms.incoming.settled();
      }
      assert.deepEqual(await statuses(evading), ['soft-failed']);
      const head = await fixture.engine.heads.get(room.roomId);
      assert.equal(head?.membership(remoteBob), 'ban');
    });

    it('places events that refer to each other in a cycle', async () => {
      const { room, peers, send, statuses } = await joinedRoom(open, { version: '2' });
      const tip = room.newest;
      const [first, second] = ['$0001:a.example', '$0002:a.example'] as const;
      room.nextEventNumber = 1;
      assert.equal(
        room.say(creator, 'one', { prev: [second], auth: room.authEventsFor(tip, creator) }),
        first,
      );
      assert.equal(
        room.say(creator, 'two', { prev: [first], auth: room.authEventsFor(tip, creator) }),
        second,
      );
      const state = [...room.get(tip).stateAfter.values()];
      peers.scripts.set('a.example', {
        missingEvents: async (_server, _roomId, { latest }) =>
          room.pdus([latest[0] === first ? second : first]),
        stateIds: async () => ({ state, authChain: [...room.authChain(state)] }),
      });
      peers.down.add('b.example');
      await send('a.example', first);
      assert.deepEqual(await statuses(first, second), ['placed', 'placed']);
    });

    it('retries an event whose auth events are forged, without fetching the forged events again', async () => {
      const { room, peers, send, statuses, fixture } = await joinedRoom(open);
      const carol = '@carol:c.example';
      const join = room.join(carol, { key: newSigningKey('k') });
      const bad = room.say(carol, 'hello', {
        prev: [room.get(join).event.prevEventIds[0]!],
        auth: room.authEventsFor(join, carol),
      });
      const good = room.say(creator, 'good', { prev: [room.get(join).event.prevEventIds[0]!] });
      await send('a.example', bad, good);
      assert.deepEqual(await statuses(join, bad, good), ['unknown', 'unknown', 'placed']);
      const requestsBefore = peers.count('eventAuth');
      const fetched = peers.count('event');
      assert.ok(requestsBefore > 0);
      fixture.clock.advance(20_000);
      await fixture.rooms.incoming.settled();
      assert.ok(peers.count('eventAuth') > requestsBefore);
      assert.equal(peers.count('event'), fetched, 'a forged event is not fetched again');
    });

    it('bounds requests for an endless auth chain, and places other events meanwhile', async () => {
      const { room, peers, send, statuses, fixture } = await joinedRoom(open);
      const { newest: tip } = room;
      const auth = room.authEventsFor(tip, creator);
      const first = auth.find((id) => room.get(id).event.type === 'm.room.power_levels');
      assert.ok(first);
      const authBy = (levels: string) => auth.map((id) => (id === first ? levels : id));
      let levels = first;
      for (let index = 0; index < 200; index++) {
        const content = { users: { [creator]: 100 }, index };
        const draft = { type: 'm.room.power_levels', sender: creator, stateKey: '', content };
        levels = room.add({ ...draft, prev: [tip], auth: authBy(levels) });
      }
      const last = room.say(creator, 'by the end of the chain', { prev: [tip], auth: authBy(levels) });
      const good = room.say(creator, 'good', { prev: [tip] });
      peers.scripts.set('a.example', { eventAuth: async () => Array(10_001).fill(room.pdu(levels)) });
      peers.down.add('b.example');
      await send('a.example', last, good);
      assert.deepEqual(await statuses(last, good, levels), ['unknown', 'placed', 'unknown']);
      assert.ok(peers.count('event') <= 25, `${peers.count('event')} events were fetched`);
      peers.scripts.clear();
      fixture.clock.advance(60_000);
      await fixture.rooms.incoming.settled();
      assert.deepEqual(await statuses(last, levels), ['placed', 'outlier']);
    });

    it('delays the events of a slow server, but not the events of other servers', async () => {
      const { room, peers, send, statuses, fixture } = await joinedRoom(open);
      const tip = room.newest;
      const missing = ['x', 'y'].map((text) => room.say(remoteBob, text, { prev: [tip] }));
      const late = missing.map((id) => room.say(remoteBob, 'late', { prev: [id] }));
      const good = room.say(creator, 'good', { prev: [tip] });
      peers.scripts.set('b.example', {
        async missingEvents(_server, _roomId, { latest }) {
          fixture.clock.advance(9_000);
          return room.pdus(room.get(latest[0]!).event.prevEventIds);
        },
      });
      await send('b.example', ...late, good);
      assert.deepEqual(await statuses(...late, good), ['placed', 'unknown', 'placed']);
      fixture.clock.advance(9_001);
      await fixture.rooms.incoming.settled();
      assert.deepEqual(await statuses(...late), ['placed', 'placed']);
    });

    it('refuses with an error all events of a transaction that exceeds the staging limits', async () => {
      const { room, fixture, statuses } = await joinedRoom(open);
      const { incoming } = fixture.rooms;
      const ids = Array.from({ length: 2_001 }, () => room.say(creator, 'flood', { prev: ['$nothing'] }));
      const outcomes = Object.values(await incoming.receive('a.example', room.pdus(ids)));
      assert.equal(outcomes.length, ids.length);
      assert.ok(outcomes.every(({ error }) => /send this event again later/.test(error ?? '')));
      assert.deepEqual(await statuses(ids[0]!), ['unknown']);
    });
  });

  it('Incoming processes arbitrary events and responses without errors, and still places valid events', async () => {
    const { room, peers, fixture, statuses } = await joinedRoom(open);
    const { incoming } = fixture.rooms;
    const json = fc.jsonValue() as fc.Arbitrary<never>;
    const sample = room.pdu(room.say(creator, 'sample'));
    const answer = fc.oneof(json, mutated(sample) as fc.Arbitrary<never>);
    await fc.assert(
      fc.asyncProperty(
        fc.array(answer, { maxLength: 4 }),
        fc.array(fc.string(), { maxLength: 4 }),
        fc.array(fc.oneof(answer, mutated({ ...sample, room_id: room.roomId }) as fc.Arbitrary<never>)),
        async (events, texts, pdus) => {
          const ids = texts.map((text) => `$${text}`);
          for (const server of ['a.example', 'b.example']) {
            peers.scripts.set(server, {
              event: async () => events[0] ?? null,
              missingEvents: async () => events,
              stateIds: async () => ({ state: ids, authChain: ids }),
              eventAuth: async () => events,
            });
          }
          const incomplete = room.say(creator, 'incomplete', { prev: ['$nothing'] });
          await incoming.receive('a.example', [...pdus, room.pdu(incomplete)]);
          await incoming.settled();
          fixture.clock.advance(1_000_000);
        },
      ),
      { numRuns: runs(25) },
    );
    await incoming.settled();
    peers.scripts.clear();
    const good = room.say(creator, 'good', { prev: [...(await extremities())] });
    await incoming.receive('a.example', [room.pdu(good)]);
    await incoming.settled();
    assert.deepEqual(await statuses(good), ['placed']);

    async function extremities() {
      const head = await fixture.engine.heads.get(room.roomId);
      return head!.extremities.map(({ eventId }) => eventId);
    }
  });
});
