import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { type Answer, alice } from '../support/rooms/rooms.ts';
import { eventsIn, far, fay, finn, ServedRooms } from '../support/rooms/served-rooms.ts';
import { enc } from '../support/users/test-client.ts';

/**
 * A membership change of fay. After each one, and before the first, alice sends a message; at the end finn joins, and
 * alice sends a last message.
 */
type MembershipChange = 'invite' | 'join' | 'leave' | 'ban' | 'unban';

/**
 * Sequences of changes. For each of them and each history visibility, whether the server of fay and finn receives each
 * message complete (`y`) or redacted (`n`).
 */
const histories: [MembershipChange[], Record<'world_readable' | 'shared' | 'invited' | 'joined', string>][] =
  [
    [[], { world_readable: 'yy', shared: 'yy', invited: 'ny', joined: 'ny' }],
    [['invite'], { world_readable: 'yyy', shared: 'yyy', invited: 'nyy', joined: 'nny' }],
    [['invite', 'join'], { world_readable: 'yyyy', shared: 'yyyy', invited: 'nyyy', joined: 'nnyy' }],
    [['join', 'leave'], { world_readable: 'yyyy', shared: 'yyyy', invited: 'nyny', joined: 'nyny' }],
    [['invite', 'leave'], { world_readable: 'yyyy', shared: 'yyyy', invited: 'nyny', joined: 'nnny' }],
    [
      ['join', 'ban', 'unban'],
      { world_readable: 'yyyyy', shared: 'yyyyy', invited: 'nynny', joined: 'nynny' },
    ],
  ];

forSelectedDatabases(import.meta.url, (open) => {
  describe('history visibility for other servers', () => {
    let served: ServedRooms;
    before(async () => {
      served = await ServedRooms.open(open);
    });
    after(() => served.stop());

    async function playHistory(visibility: string, changes: readonly MembershipChange[]) {
      const roomId = await served.room(visibility);
      const messageIds = [await served.say(roomId, 'message 0')];
      for (const [index, change] of changes.entries()) {
        const sender = change === 'join' || change === 'leave' ? fay : alice;
        await served.member(roomId, fay, change === 'unban' ? 'leave' : change, sender);
        messageIds.push(await served.say(roomId, `message ${index + 1}`));
      }
      const joined = await served.member(roomId, finn, 'join');
      messageIds.push(await served.say(roomId, `message ${changes.length + 1}`));
      return { roomId, messageIds, joined };
    }

    /**
     * Returns for each message whether a list contains it complete (`y`), redacted (`n`) or not at all (`-`).
     */
    function visibleIn(answer: Answer, list: string, messageIds: readonly string[]): string {
      assert.equal(answer.status, 200);
      const events = new Map(eventsIn(answer, list).map((received) => [received.event.eventId, received]));
      return messageIds
        .map((eventId, index) => {
          const received = events.get(eventId);
          if (!received) return '-';
          const isComplete = received.event.content['body'] === `message ${index}`;
          assert.equal(received.hashMatches, isComplete, 'an event is complete or redacted');
          if (!isComplete) assert.deepEqual(received.event.content, {});
          return isComplete ? 'y' : 'n';
        })
        .join('');
    }

    for (const [changes, rows] of histories) {
      for (const [visibility, row] of Object.entries(rows)) {
        it(`returns messages complete (y) or redacted (n), here ${row}, for ${visibility} history after ${changes.join(', ') || 'no change'} of fay and the join of finn`, async () => {
          const { roomId, messageIds } = await playHistory(visibility, changes);
          const last = messageIds.at(-1)!;
          const pages = await served.get(`/backfill/${enc(roomId)}?v=${enc(last)}&limit=100`);
          assert.equal(visibleIn(pages, 'pdus', messageIds), row, 'backfill');
          const gap = { earliest_events: [], latest_events: [last], limit: 100 };
          const missing = await served.post(`/get_missing_events/${enc(roomId)}`, gap);
          assert.equal(
            visibleIn(missing, 'events', messageIds),
            `${row.slice(0, -1)}-`,
            'get_missing_events',
          );
          const single: string[] = [];
          for (const [index, eventId] of messageIds.entries()) {
            const event = await served.get(`/event/${enc(eventId)}`);
            single.push(visibleIn(event, 'pdus', messageIds)[index]!);
          }
          assert.equal(single.join(''), row, 'event');
          const { body } = await served.get(`/state_ids/${enc(roomId)}?event_id=${enc(messageIds[0]!)}`);
          const state = await served.get(`/state/${enc(roomId)}?event_id=${enc(messageIds[0]!)}`);
          assert.deepEqual(
            eventsIn(state, 'pdus').map(({ event, hashMatches }) => hashMatches && event.eventId),
            body['pdu_ids'],
            'state events are never redacted, because they authorize others',
          );
        });
      }
    }

    it('redacts messages of an erased user for all servers, also for one that was in the room before the erasure', async () => {
      const erased = new Map<string, number>();
      const servedAfterErasure = await ServedRooms.open(open, { erased: { positions: async () => erased } });
      try {
        const roomId = await servedAfterErasure.room();
        const messageIds = [await servedAfterErasure.say(roomId, 'message 0')];
        const sayAndBackfill = async () => {
          messageIds.push(await servedAfterErasure.say(roomId, `message ${messageIds.length}`));
          const page = await servedAfterErasure.get(
            `/backfill/${enc(roomId)}?v=${enc(messageIds.at(-1)!)}&limit=100`,
          );
          return visibleIn(page, 'pdus', messageIds);
        };
        const erase = () => erased.set(alice, servedAfterErasure.rooms.streams.current + 1);
        await servedAfterErasure.member(roomId, fay, 'join');
        assert.equal(await sayAndBackfill(), 'yy');
        erase();
        assert.equal(await sayAndBackfill(), 'nnn');
        await servedAfterErasure.member(roomId, finn, 'join');
        assert.equal(await sayAndBackfill(), 'nnnn');
        const state = await servedAfterErasure.get(`/state/${enc(roomId)}?event_id=${enc(messageIds[1]!)}`);
        assert.ok(eventsIn(state, 'pdus').every(({ hashMatches }) => hashMatches));
      } finally {
        await servedAfterErasure.stop();
      }
    });

    it('returns from timestamp_to_event only events that the requesting server may see', async () => {
      const { roomId, messageIds } = await playHistory('joined', ['join', 'leave']);
      const timeOf = async (eventId: string) =>
        (await served.rooms.engine.events.getById(eventId))!.event.originServerTs;
      const nearest = async (ts: number, dir: 'f' | 'b') =>
        (await served.get(`/timestamp_to_event/${enc(roomId)}?ts=${ts}&dir=${dir}`)).body['event_id'];
      const hidden = await timeOf(messageIds[2]!);
      const nearestEventIds = [await nearest(hidden, 'b'), await nearest(hidden, 'f')];
      for (const eventId of nearestEventIds) assert.notEqual(eventId, messageIds[2]);
      const events = await served.rooms.engine.events.getManyById(nearestEventIds as string[]);
      const members = nearestEventIds.map((eventId) => events.get(eventId as string)?.event.stateKey);
      assert.deepEqual(members, [fay, finn], 'the leave of fay and the join of finn');
    });

    it('returns a change of the history visibility to servers that may see the events before or after the change', async () => {
      const roomId = await served.room('joined');
      const hiddenMessage = await served.say(roomId, 'message 0');
      const openingId = await served.state(roomId, 'm.room.history_visibility', '', {
        history_visibility: 'world_readable',
      });
      const openMessage = await served.say(roomId, 'message 1');
      const closingId = await served.state(roomId, 'm.room.history_visibility', '', {
        history_visibility: 'joined',
      });
      await served.say(roomId, 'message 2');
      const joined = await served.member(roomId, fay, 'join');
      const page = await served.get(`/backfill/${enc(roomId)}?v=${enc(joined)}&limit=100`);
      const complete = eventsIn(page, 'pdus').filter(({ hashMatches }) => hashMatches);
      const ids = complete.map(({ event }) => event.eventId);
      assert.ok([openingId, openMessage, closingId, joined].every((eventId) => ids.includes(eventId)));
      assert.ok(!ids.includes(hiddenMessage));
    });

    it('returns to a server the messages that at least one of its 61 users may see', async () => {
      const roomId = await served.room('joined');
      await served.say(roomId, 'message 0');
      const users = Array.from({ length: 60 }, (_, index) => `@u${index}:${far}`);
      for (const userId of users) await served.member(roomId, userId, 'join');
      const visibleId = await served.say(roomId, 'message 1');
      for (const userId of users) await served.member(roomId, userId, 'leave');
      const hiddenId = await served.say(roomId, 'message 2');
      await served.member(roomId, fay, 'join');
      const isComplete = async (eventId: string) =>
        eventsIn(await served.get(`/event/${enc(eventId)}`), 'pdus')[0]?.hashMatches;
      assert.equal(await isComplete(visibleId), true);
      assert.equal(await isComplete(hiddenId), false);
    });
  });
});
