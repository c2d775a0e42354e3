import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { codePoint } from '../support/inputs/code-point.ts';
import { type Answer, alice } from '../support/rooms/rooms.ts';
import { far, fay, ServedRooms } from '../support/rooms/served-rooms.ts';
import { enc } from '../support/users/test-client.ts';

/** Sends one request about a room and an event in it. */
type RoomRequest = (
  sendRequest: (method: string, path: string, body?: object) => Promise<Answer>,
  room: string,
  event: string,
) => Promise<Answer>;

/**
 * Every endpoint that answers about a room. `eventOfRoom`: the request names a room and an event, which must belong to
 * that room. `roomOfEvent`: the request names only an event.
 */
const roomRequests: Record<string, { request: RoomRequest; eventOfRoom?: true; roomOfEvent?: true }> = {
  event: { request: (sendRequest, _room, event) => sendRequest('GET', `/event/${event}`), roomOfEvent: true },
  backfill: {
    request: (sendRequest, room, event) => sendRequest('GET', `/backfill/${room}?v=${event}&limit=5`),
  },
  get_missing_events: {
    request: (sendRequest, room, event) =>
      sendRequest('POST', `/get_missing_events/${room}`, {
        earliest_events: [],
        latest_events: [decodeURIComponent(event)],
      }),
  },
  timestamp_to_event: {
    request: (sendRequest, room) => sendRequest('GET', `/timestamp_to_event/${room}?ts=0&dir=f`),
  },
  state: {
    request: (sendRequest, room, event) => sendRequest('GET', `/state/${room}?event_id=${event}`),
    eventOfRoom: true,
  },
  state_ids: {
    request: (sendRequest, room, event) => sendRequest('GET', `/state_ids/${room}?event_id=${event}`),
    eventOfRoom: true,
  },
  event_auth: {
    request: (sendRequest, room, event) => sendRequest('GET', `/event_auth/${room}/${event}`),
    eventOfRoom: true,
  },
};

forSelectedDatabases(import.meta.url, (open) => {
  describe('requests of other servers about rooms', () => {
    let served: ServedRooms;
    before(async () => {
      served = await ServedRooms.open(open);
    });
    after(() => served.stop());

    const asFar = (method: string, path: string, body?: object) =>
      served.http.request(far, method, path, body as Record<string, never>);
    const outcome = ({ status, body }: Answer) =>
      status === 200 ? 'answered' : `${status} ${body['errcode']}`;

    async function makeRoom(visibility = 'world_readable') {
      const roomId = await served.room(visibility);
      return { roomId, eventId: await served.say(roomId, 'hello') };
    }

    for (const [name, { request, eventOfRoom, roomOfEvent }] of Object.entries(roomRequests)) {
      const outcomeFor = async (roomId: string, eventId: string) =>
        outcome(await request(asFar, enc(roomId), enc(eventId)));

      describe(name, () => {
        it('answers a server while it is in the room, not before and not after', async () => {
          const { roomId, eventId } = await makeRoom();
          assert.equal(await outcomeFor(roomId, eventId), '403 M_FORBIDDEN');
          await served.member(roomId, fay, 'invite', alice);
          assert.equal(await outcomeFor(roomId, eventId), '403 M_FORBIDDEN', 'when only invited');
          await served.member(roomId, fay, 'join');
          assert.equal(await outcomeFor(roomId, eventId), 'answered');
          await served.member(roomId, fay, 'leave');
          assert.equal(await outcomeFor(roomId, eventId), '403 M_FORBIDDEN', 'when it has left');
          await served.member(roomId, fay, 'ban', alice);
          assert.equal(await outcomeFor(roomId, eventId), '403 M_FORBIDDEN', 'when it is banned');
        });

        it('refuses a server that the server ACL denies', async () => {
          const { roomId, eventId } = await makeRoom();
          await served.member(roomId, fay, 'join');
          await served.state(roomId, 'm.room.server_acl', '', { allow: ['*'], deny: ['*.example'] });
          assert.equal(await outcomeFor(roomId, eventId), '403 M_FORBIDDEN');
          await served.state(roomId, 'm.room.server_acl', '', { allow: ['*'], deny: ['*.org'] });
          assert.equal(await outcomeFor(roomId, eventId), 'answered');
          await served.state(roomId, 'm.room.server_acl', '', {});
          assert.equal(await outcomeFor(roomId, eventId), '403 M_FORBIDDEN', 'when the ACL allows no server');
        });

        it('fails with 404 for unknown rooms and events', async () => {
          const { roomId, eventId } = await makeRoom();
          await served.member(roomId, fay, 'join');
          const unknown = '!unknown:test';
          if (!roomOfEvent) assert.equal(await outcomeFor(unknown, eventId), '404 M_NOT_FOUND');
          if (eventOfRoom || roomOfEvent) {
            assert.equal(await outcomeFor(roomId, '$unknown'), '404 M_NOT_FOUND');
          }
        });

        it('reveals nothing of events of another room', async () => {
          const { roomId } = await makeRoom();
          await served.member(roomId, fay, 'join');
          const otherRoom = await makeRoom('joined');
          const answer = await request(asFar, enc(roomId), enc(otherRoom.eventId));
          assert.ok(!JSON.stringify(answer.body).includes(otherRoom.eventId.slice(1)));
          assert.ok(!JSON.stringify(answer.body).includes(otherRoom.roomId.slice(1)));
          if (eventOfRoom) assert.equal(outcome(answer), '404 M_NOT_FOUND');
          if (roomOfEvent) assert.equal(outcome(answer), '403 M_FORBIDDEN');
        });

        it('answers after all local users have left only if the requesting server was still in the room then', async () => {
          const shared = await makeRoom();
          await served.member(shared.roomId, fay, 'join');
          await served.member(shared.roomId, alice, 'leave');
          assert.equal(await outcomeFor(shared.roomId, shared.eventId), 'answered');
          const otherRoom = await makeRoom();
          await served.member(otherRoom.roomId, alice, 'leave');
          assert.equal(await outcomeFor(otherRoom.roomId, otherRoom.eventId), '404 M_NOT_FOUND');
        });
      });
    }

    it('answers arbitrary requests about rooms with 200 or 4xx', async () => {
      const { roomId, eventId } = await makeRoom();
      await served.member(roomId, fay, 'join');
      const text = fc.oneof(
        fc.string({ unit: codePoint, maxLength: 40 }),
        fc.constantFrom(roomId, eventId, '', '\0', '%', '../..', '__proto__', '$', '!', '0', '-1', '1e99'),
        fc.string({ minLength: 300, maxLength: 3_000 }),
      );
      const number = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(2 ** 53, -(2 ** 53), 1e300, -0));
      const anyValue = fc.oneof(
        text,
        number,
        fc.constant(null),
        fc.array(text, { maxLength: 30 }),
        fc.jsonValue(),
      );
      const query = fc.dictionary(fc.constantFrom('v', 'limit', 'event_id', 'ts', 'dir', 'x'), text, {
        maxKeys: 5,
      });
      const path = fc.constantFrom(
        (room: string, event: string) => ['GET', `/event/${event || room}`],
        (room: string) => ['GET', `/backfill/${room}`],
        (room: string) => ['POST', `/get_missing_events/${room}`],
        (room: string) => ['GET', `/timestamp_to_event/${room}`],
        (room: string) => ['GET', `/state/${room}`],
        (room: string) => ['GET', `/state_ids/${room}`],
        (room: string, event: string) => ['GET', `/event_auth/${room}/${event}`],
      );
      const body = fc.record(
        { earliest_events: anyValue, latest_events: anyValue, limit: anyValue, min_depth: anyValue },
        { requiredKeys: [] },
      );
      const encoded = text.map((value) => encodeURIComponent(value.toWellFormed()));
      await fc.assert(
        fc.asyncProperty(
          path,
          fc.oneof(encoded, fc.constant(enc(roomId))),
          encoded,
          query,
          body,
          async (pathOf, room, event, parameters, content) => {
            const [method = 'GET', where = ''] = pathOf(room || 'x', event || 'x');
            const search = Object.entries(parameters)
              .map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`)
              .join('&');
            const answer = await asFar(method, `${where}?${search}`, method === 'POST' ? content : undefined);
            assert.ok(
              answer.status === 200 || (answer.status >= 400 && answer.status < 500),
              outcome(answer),
            );
          },
        ),
        { numRuns: 150 },
      );
      assert.equal((await served.get(`/event/${enc(eventId)}`)).status, 200, 'the server still answers');
    });
  });
});
