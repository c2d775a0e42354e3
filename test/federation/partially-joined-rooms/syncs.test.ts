import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type JsonObject, receivePdu, signEvent, stateMapKey } from '../../../src/protocol/index.ts';
import { forSelectedDatabases } from '../../support/databases/databases.ts';
import { until } from '../../support/other-servers/federation-sender.ts';
import { ScriptedResident } from '../../support/other-servers/scripted-resident.ts';
import { SignedRoom } from '../../support/rooms/signed-room.ts';
import type { SlidingRoomJson, SlidingSyncJson } from '../../support/users/sliding-client.ts';
import { enc, type TestClient } from '../../support/users/test-client.ts';
import { bodies, lazy, membersIn, ResidentRooms, type RoomEntry } from './resident-rooms.ts';

const minute = 60_000;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('syncs of a room that was joined without members', () => {
    let residents: ResidentRooms;
    let anna: TestClient;
    before(async () => {
      residents = await ResidentRooms.start(kind);
      anna = residents.anna;
    });
    after(() => residents.stop());

    /** Polls until a sync has an entry of the room, because other data, such as presence, can come first. */
    async function nextSyncWith(roomId: string, since: string): Promise<RoomEntry> {
      const { rooms, next_batch } = await anna.sync(since, { timeout: 60_000 });
      return rooms?.join?.[roomId] ?? nextSyncWith(roomId, next_batch);
    }

    it('leaves the room out of syncs without lazy_load_members until its members are known, and then ends a waiting sync', async () => {
      const { resident, roomId, charlie, derek, join } = await residents.open();
      const sinceBeforeJoin = (await anna.sync()).next_batch;
      const release = resident.holdState();
      await join();
      await resident.send(resident.say('first', charlie));
      await until(async () => {
        const { rooms } = await anna.sync(undefined, { filter: lazy });
        return bodies(rooms?.join?.[roomId]).includes('first');
      });
      assert.equal((await anna.sync()).rooms?.join?.[roomId], undefined);
      const { rooms: early, next_batch: since } = await anna.sync(sinceBeforeJoin);
      assert.equal(early?.join?.[roomId], undefined);
      const waiting = nextSyncWith(roomId, since);
      release();
      const entry = await waiting;
      assert.deepEqual(bodies(entry), ['first']);
      assert.deepEqual(membersIn(entry), [anna.id, charlie, resident.room.creator, derek].sort());
    });

    it('adds the room to syncs once its state is complete, even if the complete state has no further member', async () => {
      const { resident, roomId, join } = await residents.open({ withMembers: false });
      resident.heroes = [resident.room.creator];
      const release = resident.holdState();
      await join();
      const { rooms, next_batch: since } = await anna.sync();
      assert.equal(rooms?.join?.[roomId], undefined);
      const waiting = nextSyncWith(roomId, since);
      release();
      const entry = await waiting;
      assert.deepEqual(membersIn(entry), [anna.id, resident.room.creator].sort());
    });

    it('sends the room in lazy syncs with the memberships of the senders', async () => {
      const { resident, roomId, charlie, derek, join, members } = await residents.open();
      let since = (await anna.sync(undefined, { filter: lazy })).next_batch;
      const release = resident.holdState();
      await join();
      const first = await anna.sync(since, { filter: lazy });
      assert.ok(first.rooms?.join?.[roomId]);
      since = first.next_batch;
      for (const [sender, body] of [
        [charlie, 'from charlie'],
        [derek, 'from derek'],
      ] as const) {
        await resident.send(resident.say(body, sender));
        let entry: RoomEntry | undefined;
        // A sync may also return for something else: for a changed device list, for instance.
        while (bodies(entry).length === 0) {
          const { rooms, next_batch: next } = await anna.sync(since, { filter: lazy, timeout: 60_000 });
          since = next;
          entry = rooms?.join?.[roomId];
          if (entry === undefined) continue;
          assert.deepEqual(bodies(entry), [body]);
          assert.deepEqual(membersIn(entry), [sender]);
        }
      }
      const initial = (await anna.sync(undefined, { filter: lazy })).rooms?.join?.[roomId];
      for (const userId of [anna.id, charlie, derek]) assert.ok(membersIn(initial).includes(userId), userId);
      release();
      await members();
      await resident.send(resident.say('afterwards', charlie));
      await until(
        async () => bodies((await anna.sync(since, { filter: lazy })).rooms?.join?.[roomId]).length > 0,
      );
    });

    it('sends every changed membership in a lazy sync with a limited timeline, once the room is complete', async () => {
      const { server, resident, roomId, charlie, derek, join, members } = await residents.open();
      const release = resident.holdState();
      await join();
      const { next_batch: since } = await anna.sync(undefined, { filter: lazy });
      release();
      await members();
      const frank = `@frank:${server.name}`;
      const events = [
        resident.setState('m.room.member', { membership: 'join' }, frank, frank),
        resident.setState('m.room.member', { membership: 'leave' }, charlie, charlie),
        ...Array.from({ length: 5 }, (_, index) => resident.say(`message ${index}`, derek)),
      ];
      await resident.send(...events);
      const filter = { room: { ...lazy.room, timeline: { limit: 1 } } };
      await until(async () => {
        const entry = (await anna.sync(since, { filter })).rooms?.join?.[roomId];
        if (!bodies(entry).includes('message 4')) return false;
        const memberIds = membersIn(entry);
        return [frank, charlie, derek].every((userId) => memberIds.includes(userId));
      });
    });

    it('leaves the room out of sliding sync lists that require all members, and sends the memberships of the senders in other lists', async () => {
      const { resident, roomId, charlie, derek, join, members } = await residents.open();
      const release = resident.holdState();
      await join();
      await resident.send(resident.say('from charlie', charlie));
      const path = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync';
      const roomWith = async (...required: [string, string][]) => {
        const lists = { all: { ranges: [[0, 50]], timeline_limit: 5, required_state: required } };
        const { body, raw, status } = await anna.request('POST', path, { lists });
        assert.equal(status, 200, raw);
        return (body as unknown as SlidingSyncJson).rooms[roomId];
      };
      const membersOf = (room: SlidingRoomJson | undefined) =>
        (room?.required_state ?? []).map(({ state_key: key }) => key).sort();
      await until(async () => membersOf(await roomWith(['m.room.member', '$LAZY'])).includes(charlie));
      assert.equal(await roomWith(['m.room.member', '*']), undefined);
      release();
      await members();
      await until(async () => (await roomWith(['m.room.member', '*'])) !== undefined);
      const allMembers = [anna.id, charlie, resident.room.creator, derek].sort();
      assert.deepEqual(membersOf(await roomWith(['m.room.member', '*'])), allMembers);
    });

    for (const response of ['has', 'omits'] as const) {
      it(`sends the room to syncs without lazy_load_members although the keys of one member cannot be fetched, and then that member when they can be fetched, where the response to the join ${response} the members`, async () => {
        const { several, clock } = residents;
        const server = await several.scripted(`resident-${response}.test`);
        const gone = await several.scripted(`gone-${response}.test`);
        const room = new SignedRoom('11', { serverName: server.name, key: server.key });
        const gina = `@gina:${gone.name}`;
        const { event } = room.setState('m.room.member', { membership: 'join' }, gina, gina);
        const unsigned = { ...event, pdu: { ...event.pdu, signatures: {} } };
        const byGone = signEvent(unsigned, { serverName: gone.name, key: gone.key });
        room.events.set(event.eventId, byGone);
        room.state.set(stateMapKey('m.room.member', gina), byGone);
        room.say('after Gina');
        const resident = new ScriptedResident(server, 'a.test', room);
        if (response === 'has') {
          server.on('PUT /_matrix/federation/v2/send_join/', ({ body }) => {
            const answer: JsonObject = { ...room.stateAndAuthChain(), event: body, members_omitted: false };
            resident.accept(receivePdu(body, room.version).event);
            return answer;
          });
        }
        const srvName = `_matrix-fed._tcp.${gone.name}`;
        const records = several.resolver.srv.get(srvName)!;
        several.resolver.srv.delete(srvName);
        several.resolver.hosts.delete(gone.name);

        const path = `/rooms/${enc(room.roomId)}`;
        const before = (await anna.sync()).next_batch;
        const query = { via: server.name };
        const { status, raw } = await anna.call('POST', `/join/${enc(room.roomId)}`, {}, query);
        assert.equal(status, 200, raw);
        let since = before;
        let entry: RoomEntry | undefined;
        while (!entry) {
          const { rooms, next_batch: next } = await anna.sync(since, { timeout: 60_000 });
          since = next;
          entry = rooms?.join?.[room.roomId];
        }
        const known = [anna.id, room.creator].sort();
        assert.deepEqual(membersIn(entry), known);
        assert.deepEqual(membersIn((await anna.sync(before)).rooms?.join?.[room.roomId]), known);
        assert.deepEqual(membersIn((await anna.sync()).rooms?.join?.[room.roomId]), known);
        const joined = async () => {
          const answer = await anna.do('GET', `${path}/joined_members`);
          return Object.keys(answer['joined'] as object).sort();
        };
        assert.deepEqual(await joined(), known);
        await resident.send(resident.say('while Gina is missing'));
        entry = await nextSyncWith(room.roomId, since);
        assert.deepEqual(bodies(entry), ['while Gina is missing']);

        several.resolver.srv.set(srvName, records);
        several.resolver.hosts.set(gone.name, ['127.0.0.1']);
        since = (await anna.sync(since)).next_batch;
        await until(async () => {
          clock.advance(minute);
          return (await joined()).length === 3;
        });
        entry = await nextSyncWith(room.roomId, since);
        assert.deepEqual(membersIn(entry), [gina]);
        assert.deepEqual(entry.timeline.events, []);
      });
    }
  });
});
