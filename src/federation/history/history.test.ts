import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { UnreliableDatabase } from '../../../test/support/databases/unreliable-database.ts';
import { alice } from '../../../test/support/rooms/rooms.ts';
import { eventsIn, far, fay, idsIn, ServedRooms } from '../../../test/support/rooms/served-rooms.ts';
import { enc } from '../../../test/support/users/test-client.ts';
import { redactEvent } from '../../protocol/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';

/** Returns a request for the missing events before `latest`. */
const gapBefore = (latest: readonly string[], more: object = {}) => ({
  earliest_events: [],
  latest_events: latest,
  ...more,
});

forSelectedDatabases(import.meta.url, (open) => {
  describe('history endpoints for other servers', () => {
    let served: ServedRooms;
    before(async () => {
      served = await ServedRooms.open(open);
    });
    after(() => served.stop());

    /**
     * Creates a room with fay as a member.
     * @param messages number of messages after her join
     */
    async function roomWithMessages(messages: number) {
      const roomId = await served.room();
      const joined = await served.member(roomId, fay, 'join');
      const messageIds: string[] = [];
      for (let i = 0; i < messages; i++) messageIds.push(await served.say(roomId, `message ${i}`));
      const page = await served.get(
        `/backfill/${enc(roomId)}?v=${enc(messageIds.at(-1) ?? joined)}&limit=100`,
      );
      return { roomId, joined, messageIds, allIds: idsIn(page, 'pdus') };
    }
    const backfill = (roomId: string, from: readonly string[], limit: number) =>
      served.get(`/backfill/${enc(roomId)}?limit=${limit}${from.map((id) => `&v=${enc(id)}`).join('')}`);
    const getMissing = (roomId: string, body: object) =>
      served.post(`/get_missing_events/${enc(roomId)}`, body as Record<string, never>);

    it('returns a single event in a transaction, with its signature', async () => {
      const { roomId, messageIds } = await roomWithMessages(1);
      const answer = await served.get(`/event/${enc(messageIds[0]!)}`);
      const { origin, origin_server_ts: time, pdus } = answer.body;
      assert.deepEqual([origin, time], ['test', served.rooms.clock.now()]);
      const [received, ...furtherEvents] = eventsIn(answer, 'pdus');
      assert.equal(furtherEvents.length, 0);
      assert.equal(received?.event.eventId, messageIds[0]);
      assert.equal(received?.event.roomId, roomId);
      assert.equal(received?.hashMatches, true);
      const [{ signatures, unsigned }] = pdus as [{ signatures: Record<string, object>; unsigned?: unknown }];
      assert.deepEqual(Object.keys(signatures), ['test']);
      assert.equal(unsigned, undefined);
    });

    it('backfills from the given events backwards, newest first, up to the limit', async () => {
      const { roomId, messageIds, allIds } = await roomWithMessages(30);
      assert.deepEqual(allIds.slice(0, 30), messageIds.toReversed());
      const [created] = eventsIn(await backfill(roomId, [allIds.at(-1)!], 5), 'pdus');
      assert.equal(created?.event.type, 'm.room.create', 'the last event is the create event');
      for (const limit of [1, 2, 7]) {
        const page = idsIn(await backfill(roomId, [messageIds[20]!], limit), 'pdus');
        assert.deepEqual(page, messageIds.slice(21 - limit, 21).reverse());
      }
      const both = idsIn(await backfill(roomId, [messageIds[3]!, messageIds[9]!, messageIds[9]!], 5), 'pdus');
      assert.deepEqual(both, messageIds.slice(5, 10).reverse());
      assert.deepEqual((await backfill(roomId, [messageIds[3]!], 0)).body['pdus'], []);
      assert.deepEqual((await backfill(roomId, [messageIds[3]!], -5)).body['pdus'], []);
    });

    it('backfills an event without stored prev_events (after a purge) only if the request names this event', async () => {
      const { roomId, messageIds } = await roomWithMessages(6);
      const { engine, streams } = served.rooms;
      const { nid } = (await engine.events.getById(messageIds[2]!))!;
      await streams.write<RoomTables, void>(async (writer, publish) => {
        await writer.deleteFrom('events').where('nid', '=', nid).execute();
        publish(engine.removals, { kind: 'pruned', eventNids: [nid], roomId });
      });
      const from = async (id: string) => idsIn(await backfill(roomId, [id], 10), 'pdus');
      assert.deepEqual(await from(messageIds[5]!), [messageIds[5], messageIds[4]]);
      assert.deepEqual(await from(messageIds[3]!), [messageIds[3]]);
    });

    it('checks, without reading whole events, whether the prev_events of backfilled events are stored', async (context) => {
      const { roomId, messageIds } = await roomWithMessages(40);
      const { mock } = context.mock.method(served.rooms.engine.events, 'getManyById');
      assert.equal(idsIn(await backfill(roomId, [messageIds.at(-1)!], 30), 'pdus').length, 30);
      const read = new Set(mock.calls.flatMap(({ arguments: [ids] }) => [...ids]));
      assert.ok(read.size < 10, `${read.size} events`);
    });

    it('limits backfill and get_missing_events to 100 events, and get_missing_events to 10 by default', async () => {
      const { roomId, messageIds } = await roomWithMessages(110);
      const page = idsIn(await backfill(roomId, [messageIds.at(-1)!], 1_000_000), 'pdus');
      assert.deepEqual(page, messageIds.slice(-100).reverse());
      const gap = idsIn(
        await getMissing(roomId, gapBefore([messageIds.at(-1)!], { limit: 1_000_000 })),
        'events',
      );
      assert.deepEqual(gap, messageIds.slice(-101, -1));
      const byDefault = idsIn(await getMissing(roomId, gapBefore([messageIds.at(-1)!])), 'events');
      assert.deepEqual(byDefault, messageIds.slice(-11, -1), 'the default limit is 10');
    });

    it('returns missing events between earliest_events and latest_events, oldest first', async () => {
      const { roomId, messageIds, joined } = await roomWithMessages(8);
      const between = async (earliest: readonly string[], latest: readonly string[], more: object = {}) =>
        idsIn(
          await getMissing(roomId, { earliest_events: earliest, latest_events: latest, limit: 50, ...more }),
          'events',
        );
      assert.deepEqual(await between([messageIds[2]!], [messageIds[6]!]), messageIds.slice(3, 6));
      assert.deepEqual(await between([joined], [messageIds[3]!, messageIds[6]!]), [
        ...messageIds.slice(0, 3),
        ...messageIds.slice(4, 6),
      ]);
      assert.deepEqual(await between([messageIds[2]!], [messageIds[3]!]), []);
      assert.deepEqual(await between([messageIds[2]!], [messageIds[2]!]), []);
      const depth = (await served.rooms.engine.events.getById(messageIds[4]!))!.event.depth;
      assert.deepEqual(await between([], [messageIds[7]!], { min_depth: depth }), messageIds.slice(4, 7));
    });

    it('finds the nearest event before or after a timestamp, and rejects an unknown direction', async () => {
      const { roomId, messageIds } = await roomWithMessages(3);
      const timeOf = async (eventId: string) =>
        (await served.rooms.engine.events.getById(eventId))!.event.originServerTs;
      const nearest = (ts: number, dir: string) =>
        served.get(`/timestamp_to_event/${enc(roomId)}?ts=${ts}&dir=${dir}`);
      const time = await timeOf(messageIds[1]!);
      const expected = { event_id: messageIds[1], origin_server_ts: time };
      assert.deepEqual((await nearest(time, 'f')).body, expected);
      assert.deepEqual((await nearest(time, 'b')).body, expected);
      assert.equal((await nearest(time + 1, 'f')).body['event_id'], messageIds[2]);
      const none = await nearest((await timeOf(messageIds[2]!)) + 1, 'f');
      assert.deepEqual([none.status, none.body['errcode']], [404, 'M_NOT_FOUND']);
      assert.equal((await nearest(time, 'sideways')).status, 400);
    });

    it('returns redacted events in redacted form', async () => {
      const { roomId, messageIds } = await roomWithMessages(2);
      await served.rooms.redact(alice, roomId, messageIds[0]!);
      const stored = (await served.rooms.engine.events.getById(messageIds[0]!))!;
      const answers = [
        (await served.get(`/event/${enc(messageIds[0]!)}`)).body['pdus'],
        (await backfill(roomId, [messageIds[0]!], 1)).body['pdus'],
        (await getMissing(roomId, gapBefore([messageIds[1]!], { limit: 1 }))).body['events'],
      ];
      const expected = JSON.parse(redactEvent(stored.event).json);
      for (const answer of answers) assert.deepEqual(answer, [expected]);
      assert.deepEqual(expected.content, {});
      assert.ok(expected.signatures.test, 'the signature is valid for the redacted form');
    });

    it('returns no events of other rooms', async () => {
      const room = await roomWithMessages(2);
      const otherRoom = await roomWithMessages(2);
      const foreign = otherRoom.messageIds[1]!;
      assert.deepEqual((await backfill(room.roomId, [foreign, '$unknown'], 10)).body['pdus'], []);
      assert.deepEqual(idsIn(await backfill(room.roomId, [foreign, room.messageIds[0]!], 1), 'pdus'), [
        room.messageIds[0],
      ]);
      assert.deepEqual((await getMissing(room.roomId, gapBefore([foreign]))).body['events'], []);
    });

    it('when all local users have left a room, returns its events only to servers that were in the room', async () => {
      const { roomId, messageIds } = await roomWithMessages(2);
      await served.rooms.leave(alice, roomId);
      const head = await served.rooms.engine.heads.get(roomId);
      const extremities = head!.extremities.map(({ eventId }) => eventId);
      assert.deepEqual(
        idsIn(await getMissing(roomId, gapBefore(extremities)), 'events').slice(-2),
        messageIds,
      );
      const page = `/backfill/${enc(roomId)}?v=${enc(extremities[0]!)}&limit=3`;
      assert.deepEqual(idsIn(await served.get(page), 'pdus'), [...extremities, ...messageIds.toReversed()]);
      for (const path of [`/event/${enc(messageIds[0]!)}`, page]) {
        const { status, body } = await served.http.request('other.example', 'GET', path);
        assert.deepEqual([status, body['errcode']], [404, 'M_NOT_FOUND']);
      }
    });

    it('returns events up to the kick to a server whose users were removed, and no later events', async () => {
      const { roomId, messageIds } = await roomWithMessages(2);
      const kicked = await served.member(roomId, fay, 'leave', alice);
      const later = await served.say(roomId, 'after the kick');
      const gap = await getMissing(roomId, gapBefore([kicked], { earliest_events: [messageIds[0]] }));
      assert.deepEqual(idsIn(gap, 'events'), [messageIds[1]]);
      assert.deepEqual(idsIn(await backfill(roomId, [kicked], 2), 'pdus'), [kicked, messageIds[1]]);
      assert.deepEqual(idsIn(await served.get(`/event/${enc(kicked)}`), 'pdus'), [kicked]);
      const state = (eventId: string) => served.get(`/state_ids/${enc(roomId)}?event_id=${enc(eventId)}`);
      assert.equal((await state(kicked)).status, 200);
      const forbiddenAnswers = [
        getMissing(roomId, gapBefore([later])),
        getMissing(roomId, gapBefore([kicked, later])),
        getMissing(roomId, gapBefore(['$unknown'])),
        backfill(roomId, [later], 2),
        served.get(`/event/${enc(later)}`),
        state(later),
      ];
      for (const answer of await Promise.all(forbiddenAnswers)) {
        assert.equal(answer.body['errcode'], 'M_FORBIDDEN');
      }
    });

    it('after the local users have left a room, returns only events up to the kick to a server whose users were removed', async () => {
      const { roomId, messageIds } = await roomWithMessages(1);
      const kicked = await served.member(roomId, fay, 'leave', alice);
      await served.rooms.leave(alice, roomId);
      assert.deepEqual(idsIn(await backfill(roomId, [kicked], 2), 'pdus'), [kicked, messageIds[0]]);
      const head = await served.rooms.engine.heads.get(roomId);
      const later = head!.extremities.map(({ eventId }) => eventId);
      for (const answer of [await getMissing(roomId, gapBefore(later)), await backfill(roomId, later, 2)])
        assert.deepEqual([answer.status, answer.body['errcode']], [404, 'M_NOT_FOUND']);
    });

    it('returns no events that are not on disk', async () => {
      let database: UnreliableDatabase | undefined;
      const slow = await ServedRooms.open(open, {
        wrapDatabase: (inner) => {
          database = new UnreliableDatabase(inner);
          return database;
        },
      });
      const written = Promise.withResolvers<void>();
      try {
        const roomId = await slow.room();
        await slow.member(roomId, fay, 'join');
        const storedId = await slow.say(roomId, 'stored');
        database!.delay = () => written.promise;
        const sending = slow.say(roomId, 'pending');
        const newest = async () => (await slow.rooms.engine.heads.get(roomId))?.extremities[0]?.eventId ?? '';
        while ((await newest()) === storedId) await new Promise(setImmediate);
        const pendingId = await newest();
        const page = () => slow.get(`/backfill/${enc(roomId)}?v=${enc(pendingId)}&limit=1`);
        assert.deepEqual(idsIn(await page(), 'pdus'), []);
        assert.equal((await slow.get(`/event/${enc(pendingId)}`)).status, 404);
        written.resolve();
        assert.equal(await sending, pendingId);
        assert.deepEqual(idsIn(await page(), 'pdus'), [pendingId]);
        assert.equal((await slow.get(`/event/${enc(pendingId)}`)).status, 200);
      } finally {
        written.resolve();
        await slow.stop();
      }
    });

    it('returns only signed events with matching hashes while events are being sent', async () => {
      const { roomId } = await roomWithMessages(1);
      const ids = new Set<string>();
      const sending = Array.from({ length: 20 }, (_, i) => served.rooms.say(alice, roomId, `more ${i}`));
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
      const sent = await Promise.all(sending);
      for (const page of pages) {
        for (const { hashMatches, event } of eventsIn(page, 'pdus')) {
          assert.equal(hashMatches, true);
          ids.add(event.eventId);
        }
        const pdus = page.body['pdus'] as { signatures: { test: Record<string, string> } }[];
        for (const { signatures } of pdus) {
          // An event that is not signed yet has a signature of zero bytes.
          assert.ok(!Object.values(signatures.test)[0]!.startsWith('AAAAAAAA'), 'the event is signed');
        }
      }
      assert.ok(ids.size > 0 && sent.length === 20);
    });

    it('rejects missing and malformed parameters with 400', async () => {
      const { roomId, messageIds } = await roomWithMessages(1);
      const room = enc(roomId);
      for (const path of [
        `/backfill/${room}`,
        `/backfill/${room}?limit=5`,
        `/backfill/${room}?v=${enc(messageIds[0]!)}`,
        `/backfill/${room}?v=${enc(messageIds[0]!)}&limit=many`,
        `/timestamp_to_event/${room}?dir=f`,
        `/timestamp_to_event/${room}?ts=1`,
        `/timestamp_to_event/${room}?ts=x&dir=f`,
      ]) {
        assert.equal((await served.get(path)).status, 400, path);
      }
      for (const body of [
        {},
        gapBefore([], { earliest_events: 5 }),
        gapBefore([], { limit: '5' }),
        { latest_events: [] },
      ]) {
        assert.equal((await getMissing(roomId, body)).status, 400, JSON.stringify(body));
      }
    });

    it('requires a signed request of a server in the room', async () => {
      const { roomId, messageIds } = await roomWithMessages(1);
      for (const path of [
        `/event/${enc(messageIds[0]!)}`,
        `/backfill/${enc(roomId)}?v=${enc(messageIds[0]!)}&limit=1`,
      ]) {
        assert.equal((await served.http.request(undefined, 'GET', path)).status, 401);
        assert.equal((await served.http.request('other.example', 'GET', path)).status, 403);
        assert.equal((await served.http.request(far, 'GET', path)).status, 200);
      }
    });
  });
});
