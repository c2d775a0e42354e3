import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { alice, bob } from '../../../test/support/rooms/rooms.ts';
import { eventsIn, far, fay, idsIn, ServedRooms } from '../../../test/support/rooms/served-rooms.ts';
import { enc } from '../../../test/support/users/test-client.ts';
import { redactEvent } from '../../protocol/index.ts';

const gapTo = (latest: readonly string[], more: object = {}) => ({
  earliest_events: [],
  latest_events: latest,
  ...more,
});

forEachDatabase((open) => {
  describe('the history of rooms, for other servers', () => {
    let served: ServedRooms;
    before(async () => {
      served = await ServedRooms.open(open);
    });
    after(() => served.stop());

    /** A room that fay is in, in which so many messages were said after that. */
    async function talk(messages: number) {
      const roomId = await served.room();
      const joined = await served.member(roomId, fay, 'join');
      const said: string[] = [];
      for (let i = 0; i < messages; i++) said.push(await served.say(roomId, `message ${i}`));
      const all = await served.get(`/backfill/${enc(roomId)}?v=${enc(said.at(-1) ?? joined)}&limit=100`);
      return { roomId, joined, said, all: idsIn(all, 'pdus') };
    }
    const backfill = (roomId: string, from: readonly string[], limit: number) =>
      served.get(`/backfill/${enc(roomId)}?limit=${limit}${from.map((id) => `&v=${enc(id)}`).join('')}`);
    const missing = (roomId: string, body: object) =>
      served.post(`/get_missing_events/${enc(roomId)}`, body as Record<string, never>);

    it('single events come in a transaction, signed as they were made', async () => {
      const { roomId, said } = await talk(1);
      const answer = await served.get(`/event/${enc(said[0]!)}`);
      const { origin, origin_server_ts: time, pdus } = answer.body;
      assert.deepEqual([origin, time], ['test', served.rooms.clock.now()]);
      const [received, ...others] = eventsIn(answer, 'pdus');
      assert.equal(others.length, 0);
      assert.equal(received?.event.eventId, said[0]);
      assert.equal(received?.event.roomId, roomId);
      assert.equal(received?.hashMatches, true);
      const [{ signatures, unsigned }] = pdus as [{ signatures: Record<string, object>; unsigned?: unknown }];
      assert.deepEqual(Object.keys(signatures), ['test']);
      assert.equal(unsigned, undefined);
    });

    it('goes back from where it is asked for, newest first, and no further than asked', async () => {
      const { roomId, said, all } = await talk(30);
      assert.deepEqual(all.slice(0, 30), said.toReversed());
      const [created] = eventsIn(await backfill(roomId, [all.at(-1)!], 5), 'pdus');
      assert.equal(created?.event.type, 'm.room.create', 'it ends at the beginning');
      for (const limit of [1, 2, 7]) {
        const page = idsIn(await backfill(roomId, [said[20]!], limit), 'pdus');
        assert.deepEqual(page, said.slice(21 - limit, 21).reverse());
      }
      const both = idsIn(await backfill(roomId, [said[3]!, said[9]!, said[9]!], 5), 'pdus');
      assert.deepEqual(both, said.slice(5, 10).reverse());
      assert.deepEqual((await backfill(roomId, [said[3]!], 0)).body['pdus'], []);
      assert.deepEqual((await backfill(roomId, [said[3]!], -5)).body['pdus'], []);
    });

    it('is given in bounded pages', async () => {
      const { roomId, said } = await talk(110);
      const page = idsIn(await backfill(roomId, [said.at(-1)!], 1_000_000), 'pdus');
      assert.deepEqual(page, said.slice(-100).reverse());
      const gap = idsIn(await missing(roomId, gapTo([said.at(-1)!], { limit: 1_000_000 })), 'events');
      assert.deepEqual(gap, said.slice(-101, -1));
      const few = idsIn(await missing(roomId, gapTo([said.at(-1)!])), 'events');
      assert.deepEqual(few, said.slice(-11, -1), 'ten, when nobody says how many');
    });

    it('is filled between what is known and what is not, oldest first', async () => {
      const { roomId, said, joined } = await talk(8);
      const between = async (earliest: readonly string[], latest: readonly string[], more: object = {}) =>
        idsIn(
          await missing(roomId, { earliest_events: earliest, latest_events: latest, limit: 50, ...more }),
          'events',
        );
      assert.deepEqual(await between([said[2]!], [said[6]!]), said.slice(3, 6));
      assert.deepEqual(await between([joined], [said[3]!, said[6]!]), [
        ...said.slice(0, 3),
        ...said.slice(4, 6),
      ]);
      assert.deepEqual(await between([said[2]!], [said[3]!]), []);
      assert.deepEqual(await between([said[2]!], [said[2]!]), []);
      const depth = (await served.rooms.engine.events.getById(said[4]!))!.event.depth;
      assert.deepEqual(await between([], [said[7]!], { min_depth: depth }), said.slice(4, 7));
    });

    it('times lead to events', async () => {
      const { roomId, said } = await talk(3);
      const timeOf = async (eventId: string) =>
        (await served.rooms.engine.events.getById(eventId))!.event.originServerTs;
      const nearest = (ts: number, dir: string) =>
        served.get(`/timestamp_to_event/${enc(roomId)}?ts=${ts}&dir=${dir}`);
      const time = await timeOf(said[1]!);
      const expected = { event_id: said[1], origin_server_ts: time };
      assert.deepEqual((await nearest(time, 'f')).body, expected);
      assert.deepEqual((await nearest(time, 'b')).body, expected);
      assert.equal((await nearest(time + 1, 'f')).body['event_id'], said[2]);
      const none = await nearest((await timeOf(said[2]!)) + 1, 'f');
      assert.deepEqual([none.status, none.body['errcode']], [404, 'M_NOT_FOUND']);
      assert.equal((await nearest(time, 'sideways')).status, 400);
    });

    it('what was redacted is gone', async () => {
      const { roomId, said } = await talk(2);
      await served.rooms.redact(alice, roomId, said[0]!);
      const stored = (await served.rooms.engine.events.getById(said[0]!))!;
      const answers = [
        (await served.get(`/event/${enc(said[0]!)}`)).body['pdus'],
        (await backfill(roomId, [said[0]!], 1)).body['pdus'],
        (await missing(roomId, gapTo([said[1]!], { limit: 1 }))).body['events'],
      ];
      const expected = JSON.parse(redactEvent(stored.event).json);
      for (const answer of answers) assert.deepEqual(answer, [expected]);
      assert.deepEqual(expected.content, {});
      assert.ok(expected.signatures.test, 'signatures hold for what is left');
    });

    it('a walk does not leave its room', async () => {
      const [here, there] = [await talk(2), await talk(2)];
      const foreign = there.said[1]!;
      assert.deepEqual((await backfill(here.roomId, [foreign, '$unknown'], 10)).body['pdus'], []);
      assert.deepEqual(idsIn(await backfill(here.roomId, [foreign, here.said[0]!], 1), 'pdus'), [
        here.said[0],
      ]);
      assert.deepEqual((await missing(here.roomId, gapTo([foreign]))).body['events'], []);
    });

    it('rooms that this server has left are told of to those that were in them, and to nobody else', async () => {
      const { roomId, said } = await talk(2);
      await served.rooms.leave(alice, roomId);
      const head = await served.rooms.engine.heads.get(roomId);
      const left = head!.extremities.map(({ eventId }) => eventId);
      assert.deepEqual(idsIn(await missing(roomId, gapTo(left)), 'events').slice(-2), said);
      const page = `/backfill/${enc(roomId)}?v=${enc(left[0]!)}&limit=3`;
      assert.deepEqual(idsIn(await served.get(page), 'pdus'), [...left, ...said.toReversed()]);
      for (const path of [`/event/${enc(said[0]!)}`, page]) {
        const { status, body } = await served.http.ask('other.example', 'GET', path);
        assert.deepEqual([status, body['errcode']], [404, 'M_NOT_FOUND']);
      }
    });

    it('a server whose users were removed reads what led to that, and nothing later', async () => {
      const { roomId, said } = await talk(2);
      const kicked = await served.member(roomId, fay, 'leave', alice);
      const later = await served.say(roomId, 'without you');
      const gap = await missing(roomId, gapTo([kicked], { earliest_events: [said[0]] }));
      assert.deepEqual(idsIn(gap, 'events'), [said[1]]);
      assert.deepEqual(idsIn(await backfill(roomId, [kicked], 2), 'pdus'), [kicked, said[1]]);
      assert.deepEqual(idsIn(await served.get(`/event/${enc(kicked)}`), 'pdus'), [kicked]);
      const state = (eventId: string) => served.get(`/state_ids/${enc(roomId)}?event_id=${enc(eventId)}`);
      assert.equal((await state(kicked)).status, 200);
      const refused = [
        missing(roomId, gapTo([later])),
        missing(roomId, gapTo([kicked, later])),
        missing(roomId, gapTo(['$unknown'])),
        backfill(roomId, [later], 2),
        served.get(`/event/${enc(later)}`),
        state(later),
      ];
      for (const answer of await Promise.all(refused)) {
        assert.equal(answer.body['errcode'], 'M_FORBIDDEN');
      }
    });

    it('a server whose users were removed reads what led to that, also when those who did it have left', async () => {
      const { roomId, said } = await talk(1);
      const kicked = await served.member(roomId, fay, 'leave', alice);
      await served.rooms.leave(alice, roomId);
      assert.deepEqual(idsIn(await backfill(roomId, [kicked], 2), 'pdus'), [kicked, said[0]]);
      const head = await served.rooms.engine.heads.get(roomId);
      const later = head!.extremities.map(({ eventId }) => eventId);
      for (const answer of [await missing(roomId, gapTo(later)), await backfill(roomId, later, 2)])
        assert.deepEqual([answer.status, answer.body['errcode']], [404, 'M_NOT_FOUND']);
    });

    it('what is not on disk yet is not told', async () => {
      const { roomId } = await talk(1);
      const ids = new Set<string>();
      const sending = Array.from({ length: 20 }, (_, i) => served.rooms.say(bob, roomId, `${i}`));
      await assert.rejects(Promise.any(sending), 'bob is not in the room');
      const all = Array.from({ length: 20 }, (_, i) => served.rooms.say(alice, roomId, `more ${i}`));
      const pages = await Promise.all(
        Array.from({ length: 20 }, async () => {
          const head = await served.rooms.engine.heads.get(roomId);
          return backfill(
            roomId,
            head!.extremities.map(({ eventId }) => eventId),
            30,
          );
        }),
      );
      const sent = await Promise.all(all);
      for (const page of pages) {
        for (const { hashMatches, event } of eventsIn(page, 'pdus')) {
          assert.equal(hashMatches, true);
          ids.add(event.eventId);
        }
        const texts = page.body['pdus'] as { signatures: { test: Record<string, string> } }[];
        for (const { signatures } of texts) {
          assert.ok(!Object.values(signatures.test)[0]!.startsWith('AAAAAAAA'), 'it is signed');
        }
      }
      assert.ok(ids.size > 0 && sent.length === 20);
    });

    it('needs parameters that make sense', async () => {
      const { roomId, said } = await talk(1);
      const room = enc(roomId);
      for (const path of [
        `/backfill/${room}`,
        `/backfill/${room}?limit=5`,
        `/backfill/${room}?v=${enc(said[0]!)}`,
        `/backfill/${room}?v=${enc(said[0]!)}&limit=many`,
        `/timestamp_to_event/${room}?dir=f`,
        `/timestamp_to_event/${room}?ts=1`,
        `/timestamp_to_event/${room}?ts=x&dir=f`,
      ]) {
        assert.equal((await served.get(path)).status, 400, path);
      }
      for (const body of [
        {},
        gapTo([], { earliest_events: 5 }),
        gapTo([], { limit: '5' }),
        { latest_events: [] },
      ]) {
        assert.equal((await missing(roomId, body)).status, 400, JSON.stringify(body));
      }
    });

    it('is for servers that say who they are', async () => {
      const { roomId, said } = await talk(1);
      for (const path of [`/event/${enc(said[0]!)}`, `/backfill/${enc(roomId)}?v=${enc(said[0]!)}&limit=1`]) {
        assert.equal((await served.http.ask(undefined, 'GET', path)).status, 401);
        assert.equal((await served.http.ask('other.example', 'GET', path)).status, 403);
        assert.equal((await served.http.ask(far, 'GET', path)).status, 200);
      }
    });
  });
});
