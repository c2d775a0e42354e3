import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { ann, ben, ReferenceRoom } from '../../../test/support/rooms/reference-room.ts';
import { alice } from '../../../test/support/rooms/rooms.ts';
import { far, fay, idsIn, ServedRooms } from '../../../test/support/rooms/served-rooms.ts';
import { enc } from '../../../test/support/users/test-client.ts';

const topic = (text: string) => ({ type: 'm.room.topic', stateKey: '', content: { topic: text } });

/** The server of ann, who is in every reference room. */
const asking = 'a.example';

forEachDatabase((open) => {
  describe('states of rooms, for other servers', () => {
    let served: ServedRooms;
    before(async () => {
      served = await ServedRooms.open(open);
    });
    after(() => served.stop());

    /** A room of another server that alice has entered. */
    async function entered(version?: string) {
      const room = new ReferenceRoom(version);
      const { placement } = served.rooms.engine;
      await placement.enter(room.room, room.join(alice));
      const send = (eventId: string) => placement.place(room.roomId, room.get(eventId));
      return { room, send };
    }

    const get = (path: string) => served.http.ask(asking, 'GET', path);

    async function stateAt(room: ReferenceRoom, eventId: string) {
      const query = `${enc(room.roomId)}?event_id=${enc(eventId)}`;
      const [state, ids] = [await get(`/state/${query}`), await get(`/state_ids/${query}`)];
      assert.deepEqual([state.status, ids.status], [200, 200]);
      const [pdus, chain] = (['pdus', 'auth_chain'] as const).map((list) =>
        idsIn(state, list, room.version.id),
      );
      assert.deepEqual([ids.body['pdu_ids'], ids.body['auth_chain_ids']], [pdus, chain]);
      return { pdus: pdus!.toSorted(), chain: chain!.toSorted() };
    }

    /** All that authorises these, all the way. */
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
      it(`are those before the event, with all that authorises them, in room version ${version}`, async () => {
        const { room, send } = await entered(version);
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

    it('are resolved where histories have parted', async () => {
      const { room, send } = await entered();
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

    it('have no rejected events in them, and are not told at those', async () => {
      const { room, send } = await entered();
      const coup = room.add({
        type: 'm.room.power_levels',
        stateKey: '',
        content: { users: { [ben]: 100 } },
        sender: ben,
      });
      assert.equal((await send(coup)).rejected, true);
      const after = room.say(ben, [coup]);
      await send(after);
      const { pdus, chain } = await stateAt(room, after);
      assert.ok(!pdus.includes(coup) && !chain.includes(coup));
      const room_ = enc(room.roomId);
      for (const path of [
        `/event/${enc(coup)}`,
        `/state/${room_}?event_id=${enc(coup)}`,
        `/state_ids/${room_}?event_id=${enc(coup)}`,
        `/event_auth/${room_}/${enc(coup)}`,
      ]) {
        const { status, body } = await get(path);
        assert.deepEqual([status, body['errcode']], [404, 'M_NOT_FOUND'], path);
      }
      const page = await get(`/backfill/${room_}?v=${enc(after)}&limit=2`);
      assert.deepEqual(
        idsIn(page, 'pdus'),
        [after, ...room.get(coup).event.prevEventIds],
        'it is walked past',
      );
    });

    it('soft-failed events are told: others may come after them', async () => {
      const { room, send } = await entered();
      const before = room.forwardExtremities;
      await send(room.member(ben, 'ban', { sender: ann }));
      const evading = room.say(ben, before);
      assert.equal((await send(evading)).softFailed, true);
      const after = room.say(ann, [evading]);
      await send(after);
      assert.deepEqual(idsIn(await get(`/event/${enc(evading)}`), 'pdus'), [evading]);
      const gap = { earliest_events: before, latest_events: [after] };
      const missing = await served.http.ask(asking, 'POST', `/get_missing_events/${enc(room.roomId)}`, {
        ...gap,
      });
      assert.deepEqual(idsIn(missing, 'events'), [evading]);
      assert.deepEqual((await stateAt(room, evading)).pdus, [...room.stateBefore(evading).values()].sort());
    });

    it('are not told where they are not known', async () => {
      const { room } = await entered();
      const outlier = [...room.events.keys()][1]!;
      const paths = ['state', 'state_ids'].map(
        (name) => `/${name}/${enc(room.roomId)}?event_id=${enc(outlier)}`,
      );
      for (const path of paths) assert.equal((await get(path)).status, 404, path);
      assert.deepEqual(
        idsIn(await get(`/event/${enc(outlier)}`), 'pdus'),
        [outlier],
        'but the event itself is',
      );
      const auth = await get(`/event_auth/${enc(room.roomId)}/${enc(outlier)}`);
      assert.deepEqual(idsIn(auth, 'auth_chain').sort(), chainOf(room, [outlier]));
    });

    it('are not told while they are not complete', async () => {
      const room = new ReferenceRoom();
      const { placement } = served.rooms.engine;
      const partial = { servers: [asking], from: asking };
      const { event } = await placement.enter(room.room, { ...room.join(alice), partial });
      for (const name of ['state', 'state_ids']) {
        const answer = await get(`/${name}/${enc(room.roomId)}?event_id=${enc(event.eventId)}`);
        assert.deepEqual([answer.status, answer.body['errcode']], [404, 'M_NOT_FOUND'], name);
      }
      assert.deepEqual(idsIn(await get(`/event/${enc(event.eventId)}`), 'pdus'), [event.eventId]);
    });

    it('are nothing before the room has begun', async () => {
      const roomId = await served.room();
      await served.member(roomId, fay, 'join');
      const head = await served.rooms.engine.heads.get(roomId);
      const create = head!.entry('m.room.create', '')!.eventId;
      const query = `${enc(roomId)}?event_id=${enc(create)}`;
      const state = await served.http.ask(far, 'GET', `/state/${query}`);
      assert.deepEqual(state.body, { auth_chain: [], pdus: [] });
      const auth = await served.http.ask(far, 'GET', `/event_auth/${enc(roomId)}/${enc(create)}`);
      assert.deepEqual(auth.body, { auth_chain: [] });
    });

    it('parted histories are walked breadth first, or from the deepest on', async () => {
      const { room, send } = await entered();
      const start = room.forwardExtremities;
      const long = [room.say(ann, start)];
      for (let i = 0; i < 3; i++) long.push(room.say(ann, [long.at(-1)!]));
      const short = room.say(ben, start);
      const merge = room.say(ann, [long.at(-1)!, short]);
      for (const eventId of [...long, short, merge]) await send(eventId);
      const page = await get(`/backfill/${enc(room.roomId)}?v=${enc(merge)}&limit=4`);
      assert.deepEqual(idsIn(page, 'pdus'), [merge, long[3], long[2], long[1]]);
      const missing = await served.http.ask(asking, 'POST', `/get_missing_events/${enc(room.roomId)}`, {
        earliest_events: start,
        latest_events: [merge],
        limit: 3,
      });
      assert.deepEqual(new Set(idsIn(missing, 'events')), new Set([long[3], short, long[2]]));
    });

    it('of large rooms come in pieces, whole', async () => {
      const roomId = await served.room();
      const users = Array.from({ length: 1_100 }, (_, index) => `@u${index}:${far}`);
      const { timeline } = served.rooms.engine;
      await Promise.all(
        users.map((sender) => {
          const content = { membership: 'join' };
          return timeline.append(roomId, { type: 'm.room.member', stateKey: sender, sender, content });
        }),
      );
      const last = await served.say(roomId, 'all are there');
      const answer = await served.get(`/state/${enc(roomId)}?event_id=${enc(last)}`);
      const pdus = answer.body['pdus'] as { state_key: string }[];
      const members = new Set(pdus.map(({ state_key }) => state_key));
      assert.ok(users.every((userId) => members.has(userId)));
      assert.equal(new Set(idsIn(answer, 'pdus')).size, pdus.length);
    });
  });
});
