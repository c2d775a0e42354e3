import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { ann, ben, ReferenceRoom } from '../../../test/support/rooms/reference-room.ts';
import { alice } from '../../../test/support/rooms/rooms.ts';
import { far, fay, idsIn, ServedRooms } from '../../../test/support/rooms/served-rooms.ts';
import { enc } from '../../../test/support/users/test-client.ts';

const topic = (text: string) => ({ type: 'm.room.topic', stateKey: '', content: { topic: text } });

/** The server of ann, who is in every reference room. */
const requestingServer = 'a.example';

forSelectedDatabases(import.meta.url, (open) => {
  describe('state endpoints for other servers', () => {
    let served: ServedRooms;
    before(async () => {
      served = await ServedRooms.open(open);
    });
    after(() => served.stop());

    /** Creates a room of another server that alice has joined. */
    async function joinedRoom(version?: string) {
      const room = new ReferenceRoom(version);
      const { placement } = served.rooms.engine;
      await placement.enter(room.room, room.join(alice));
      const send = (eventId: string) => placement.place(room.roomId, room.get(eventId));
      return { room, send };
    }

    const get = (path: string) => served.http.request(requestingServer, 'GET', path);

    async function stateAt(room: ReferenceRoom, eventId: string) {
      const query = `${enc(room.roomId)}?event_id=${enc(eventId)}`;
      const state = await get(`/state/${query}`);
      const ids = await get(`/state_ids/${query}`);
      assert.deepEqual([state.status, ids.status], [200, 200]);
      const [pdus, chain] = (['pdus', 'auth_chain'] as const).map((list) =>
        idsIn(state, list, room.version.id),
      );
      assert.deepEqual([ids.body['pdu_ids'], ids.body['auth_chain_ids']], [pdus, chain]);
      return { pdus: pdus!.toSorted(), chain: chain!.toSorted() };
    }

    /** Returns the complete auth chain of these events. */
    function chainOf(room: ReferenceRoom, eventIds: Iterable<string>): string[] {
      const chain = new Set<string>();
      const add = (eventId: string) => {
        for (const auth of room.get(eventId).event.authEventIds) {
          if (!chain.has(auth)) add(auth);
          chain.add(auth);
        }
      };
      for (const eventId of eventIds) add(eventId);
      return [...chain].sort();
    }

    for (const version of ['1', '3', '6', '10', '11', '12']) {
      it(`returns the state before an event with the auth chain of that state, and the auth chain of an event, in room version ${version}`, async () => {
        const { room, send } = await joinedRoom(version);
        const sent = [
          room.say(ben),
          room.add({ ...topic('one'), sender: ann }),
          room.add({ ...topic('two'), sender: ann }),
          room.member(ben, 'leave'),
          room.say(ann),
        ];
        for (const eventId of sent) {
          await send(eventId);
          const { pdus, chain } = await stateAt(room, eventId);
          assert.deepEqual(pdus, [...room.stateBefore(eventId).values()].sort());
          assert.deepEqual(chain, chainOf(room, pdus));
        }
        for (const eventId of [sent[3]!, sent[4]!]) {
          const auth = await get(`/event_auth/${enc(room.roomId)}/${enc(eventId)}`);
          assert.deepEqual(idsIn(auth, 'auth_chain', version).sort(), chainOf(room, [eventId]));
        }
      });
    }

    it('resolves the state at an event that merges forks', async () => {
      const { room, send } = await joinedRoom();
      const before = room.forwardExtremities;
      const [one, two] = ['one', 'two'].map((text) =>
        room.add({ ...topic(text), sender: ann, prev: before }),
      );
      await send(one!);
      await send(two!);
      const merge = room.say(ben, [one!, two!]);
      await send(merge);
      assert.deepEqual((await stateAt(room, merge)).pdus, [...room.stateBefore(merge).values()].sort());
      assert.deepEqual((await stateAt(room, two!)).pdus, [...room.stateBefore(two!).values()].sort());
    });

    it('leaves out rejected events, and answers 404 for the state at a rejected event', async () => {
      const { room, send } = await joinedRoom();
      const takeover = room.add({
        type: 'm.room.power_levels',
        stateKey: '',
        content: { users: { [ben]: 100 } },
        sender: ben,
      });
      assert.equal((await send(takeover)).rejected, true);
      const after = room.say(ben, [takeover]);
      await send(after);
      const { pdus, chain } = await stateAt(room, after);
      assert.ok(!pdus.includes(takeover) && !chain.includes(takeover));
      const encodedRoomId = enc(room.roomId);
      for (const path of [
        `/event/${enc(takeover)}`,
        `/state/${encodedRoomId}?event_id=${enc(takeover)}`,
        `/state_ids/${encodedRoomId}?event_id=${enc(takeover)}`,
        `/event_auth/${encodedRoomId}/${enc(takeover)}`,
      ]) {
        const { status, body } = await get(path);
        assert.deepEqual([status, body['errcode']], [404, 'M_NOT_FOUND'], path);
      }
      const page = await get(`/backfill/${encodedRoomId}?v=${enc(after)}&limit=2`);
      assert.deepEqual(
        idsIn(page, 'pdus'),
        [after, ...room.get(takeover).event.prevEventIds],
        'backfill continues past the rejected event',
      );
    });

    it('returns soft-failed events and the state at them', async () => {
      const { room, send } = await joinedRoom();
      const before = room.forwardExtremities;
      await send(room.member(ben, 'ban', { sender: ann }));
      const softFailedId = room.say(ben, before);
      assert.equal((await send(softFailedId)).softFailed, true);
      const after = room.say(ann, [softFailedId]);
      await send(after);
      assert.deepEqual(idsIn(await get(`/event/${enc(softFailedId)}`), 'pdus'), [softFailedId]);
      const missing = await served.http.request(
        requestingServer,
        'POST',
        `/get_missing_events/${enc(room.roomId)}`,
        { earliest_events: before, latest_events: [after] },
      );
      assert.deepEqual(idsIn(missing, 'events'), [softFailedId]);
      assert.deepEqual(
        (await stateAt(room, softFailedId)).pdus,
        [...room.stateBefore(softFailedId).values()].sort(),
      );
    });

    it('answers 404 for the state at an outlier', async () => {
      const { room } = await joinedRoom();
      const outlier = [...room.events.keys()][1]!;
      const paths = ['state', 'state_ids'].map(
        (name) => `/${name}/${enc(room.roomId)}?event_id=${enc(outlier)}`,
      );
      for (const path of paths) assert.equal((await get(path)).status, 404, path);
      assert.deepEqual(
        idsIn(await get(`/event/${enc(outlier)}`), 'pdus'),
        [outlier],
        'the outlier itself is returned',
      );
      const auth = await get(`/event_auth/${enc(room.roomId)}/${enc(outlier)}`);
      assert.deepEqual(idsIn(auth, 'auth_chain').sort(), chainOf(room, [outlier]));
    });

    it('answers 404 for the state at an event while the room state is partial, and returns the event itself', async () => {
      const room = new ReferenceRoom();
      const { placement } = served.rooms.engine;
      const partial = { servers: [requestingServer], from: requestingServer };
      const { event } = await placement.enter(room.room, { ...room.join(alice), partial });
      for (const name of ['state', 'state_ids']) {
        const answer = await get(`/${name}/${enc(room.roomId)}?event_id=${enc(event.eventId)}`);
        assert.deepEqual([answer.status, answer.body['errcode']], [404, 'M_NOT_FOUND'], name);
      }
      assert.deepEqual(idsIn(await get(`/event/${enc(event.eventId)}`), 'pdus'), [event.eventId]);
    });

    it('returns an empty state before the create event', async () => {
      const roomId = await served.room();
      await served.member(roomId, fay, 'join');
      const head = await served.rooms.engine.heads.get(roomId);
      const create = head!.entry('m.room.create', '')!.eventId;
      const query = `${enc(roomId)}?event_id=${enc(create)}`;
      const state = await served.http.request(far, 'GET', `/state/${query}`);
      assert.deepEqual(state.body, { auth_chain: [], pdus: [] });
      const auth = await served.http.request(far, 'GET', `/event_auth/${enc(roomId)}/${enc(create)}`);
      assert.deepEqual(auth.body, { auth_chain: [] });
    });

    it('returns forked events by depth for backfill, and breadth first for get_missing_events', async () => {
      const { room, send } = await joinedRoom();
      const start = room.forwardExtremities;
      const long = [room.say(ann, start)];
      for (let i = 0; i < 3; i++) long.push(room.say(ann, [long.at(-1)!]));
      const short = room.say(ben, start);
      const merge = room.say(ann, [long.at(-1)!, short]);
      for (const eventId of [...long, short, merge]) await send(eventId);
      const page = await get(`/backfill/${enc(room.roomId)}?v=${enc(merge)}&limit=4`);
      assert.deepEqual(idsIn(page, 'pdus'), [merge, long[3], long[2], long[1]]);
      const missing = await served.http.request(
        requestingServer,
        'POST',
        `/get_missing_events/${enc(room.roomId)}`,
        { earliest_events: start, latest_events: [merge], limit: 3 },
      );
      assert.deepEqual(new Set(idsIn(missing, 'events')), new Set([long[3], short, long[2]]));
    });

    it('returns the complete state of a large room', async () => {
      const roomId = await served.room();
      const users = Array.from({ length: 1_100 }, (_, index) => `@u${index}:${far}`);
      const { timeline } = served.rooms.engine;
      await Promise.all(
        users.map((sender) => {
          const content = { membership: 'join' };
          return timeline.append(roomId, { type: 'm.room.member', stateKey: sender, sender, content });
        }),
      );
      const last = await served.say(roomId, 'after the joins');
      const answer = await served.get(`/state/${enc(roomId)}?event_id=${enc(last)}`);
      const pdus = answer.body['pdus'] as { state_key: string }[];
      const members = new Set(pdus.map(({ state_key }) => state_key));
      assert.ok(users.every((userId) => members.has(userId)));
      assert.equal(new Set(idsIn(answer, 'pdus')).size, pdus.length);
    });
  });
});
