import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forServerDatabases } from '../support/databases/databases.ts';
import { type Answer, alice } from '../support/rooms/rooms.ts';
import { eventsIn, far, fay, finn, ServedRooms } from '../support/rooms/served-rooms.ts';
import { enc } from '../support/users/test-client.ts';

/** What happens to fay; after each, and before the first, alice says something. In the end finn joins. */
type Happening = 'invite' | 'join' | 'leave' | 'ban' | 'unban';

/** For each visibility, what of that the server of fay and finn may see: `y`, or `n` where it gets it redacted. */
const histories: [Happening[], Record<'world_readable' | 'shared' | 'invited' | 'joined', string>][] = [
  [[], { world_readable: 'yy', shared: 'yy', invited: 'ny', joined: 'ny' }],
  [['invite'], { world_readable: 'yyy', shared: 'yyy', invited: 'nyy', joined: 'nny' }],
  [['invite', 'join'], { world_readable: 'yyyy', shared: 'yyyy', invited: 'nyyy', joined: 'nnyy' }],
  [['join', 'leave'], { world_readable: 'yyyy', shared: 'yyyy', invited: 'nyny', joined: 'nyny' }],
  [['invite', 'leave'], { world_readable: 'yyyy', shared: 'yyyy', invited: 'nyny', joined: 'nnny' }],
  [['join', 'ban', 'unban'], { world_readable: 'yyyyy', shared: 'yyyyy', invited: 'nynny', joined: 'nynny' }],
];

forServerDatabases(import.meta.url, (open) => {
  describe('what servers may see', () => {
    let served: ServedRooms;
    before(async () => {
      served = await ServedRooms.open(open);
    });
    after(() => served.stop());

    async function live(visibility: string, happenings: readonly Happening[]) {
      const roomId = await served.room(visibility);
      const said = [await served.say(roomId, 'message 0')];
      for (const [index, happening] of happenings.entries()) {
        const by = happening === 'join' || happening === 'leave' ? fay : alice;
        await served.member(roomId, fay, happening === 'unban' ? 'leave' : happening, by);
        said.push(await served.say(roomId, `message ${index + 1}`));
      }
      const joined = await served.member(roomId, finn, 'join');
      said.push(await served.say(roomId, `message ${happenings.length + 1}`));
      return { roomId, said, joined };
    }

    /** Which of the messages are whole in a list, as a row of the table; `-` for those that are not there. */
    function seenIn(answer: Answer, list: string, said: readonly string[]): string {
      assert.equal(answer.status, 200);
      const events = new Map(eventsIn(answer, list).map((one) => [one.event.eventId, one]));
      return said
        .map((eventId, index) => {
          const received = events.get(eventId);
          if (!received) return '-';
          const isWhole = received.event.content['body'] === `message ${index}`;
          assert.equal(received.hashMatches, isWhole, 'an event is whole or redacted');
          if (!isWhole) assert.deepEqual(received.event.content, {});
          return isWhole ? 'y' : 'n';
        })
        .join('');
    }

    for (const [happenings, rows] of histories) {
      for (const [visibility, row] of Object.entries(rows)) {
        it(`${visibility}, ${happenings.join(', ') || 'nothing'}, finn joins: ${row}`, async () => {
          const { roomId, said } = await live(visibility, happenings);
          const last = said.at(-1)!;
          const pages = await served.get(`/backfill/${enc(roomId)}?v=${enc(last)}&limit=100`);
          assert.equal(seenIn(pages, 'pdus', said), row, 'backfill');
          const gap = { earliest_events: [], latest_events: [last], limit: 100 };
          const missing = await served.post(`/get_missing_events/${enc(roomId)}`, gap);
          assert.equal(seenIn(missing, 'events', said), `${row.slice(0, -1)}-`, 'get_missing_events');
          const single: string[] = [];
          for (const [index, eventId] of said.entries()) {
            const event = await served.get(`/event/${enc(eventId)}`);
            single.push(seenIn(event, 'pdus', said)[index]!);
          }
          assert.equal(single.join(''), row, 'event');
          const { body } = await served.get(`/state_ids/${enc(roomId)}?event_id=${enc(said[0]!)}`);
          const state = await served.get(`/state/${enc(roomId)}?event_id=${enc(said[0]!)}`);
          assert.deepEqual(
            eventsIn(state, 'pdus').map(({ event, hashMatches }) => hashMatches && event.eventId),
            body['pdu_ids'],
            'states are told whole, for whoever checks events needs them',
          );
        });
      }
    }

    it('servers that came after a user asked for erasure get what the user said redacted', async () => {
      const erased = new Map<string, number>();
      const other = await ServedRooms.open(open, { erased: { positions: async () => erased } });
      try {
        const roomId = await other.room();
        const said = [await other.say(roomId, 'message 0')];
        const last = async () => {
          said.push(await other.say(roomId, `message ${said.length}`));
          const page = await other.get(`/backfill/${enc(roomId)}?v=${enc(said.at(-1)!)}&limit=100`);
          return seenIn(page, 'pdus', said);
        };
        const erase = () => erased.set(alice, other.rooms.streams.current + 1);
        await other.member(roomId, fay, 'join');
        assert.equal(await last(), 'yy');
        erase();
        assert.equal(await last(), 'yyy', 'it was there in time');
        await other.member(roomId, fay, 'leave');
        said.push(await other.say(roomId, `message ${said.length}`));
        await other.member(roomId, finn, 'join');
        assert.equal(await last(), 'yyyny', 'what was said while it was away, it comes too late for');
        const state = await other.get(`/state/${enc(roomId)}?event_id=${enc(said[1]!)}`);
        assert.ok(eventsIn(state, 'pdus').every(({ hashMatches }) => hashMatches));
      } finally {
        await other.stop();
      }
    });

    it('times lead to events that a server may see', async () => {
      const { roomId, said } = await live('joined', ['join', 'leave']);
      const timeOf = async (eventId: string) =>
        (await served.rooms.engine.events.getById(eventId))!.event.originServerTs;
      const nearest = async (ts: number, dir: 'f' | 'b') =>
        (await served.get(`/timestamp_to_event/${enc(roomId)}?ts=${ts}&dir=${dir}`)).body['event_id'];
      const hidden = await timeOf(said[2]!);
      const found = [await nearest(hidden, 'b'), await nearest(hidden, 'f')];
      for (const eventId of found) assert.notEqual(eventId, said[2]);
      const events = await served.rooms.engine.events.getManyById(found as string[]);
      const members = found.map((eventId) => events.get(eventId as string)?.event.stateKey);
      assert.deepEqual(members, [fay, finn], 'its own users came and went');
    });

    it('changes of the visibility are seen by those who see what was before or after', async () => {
      const roomId = await served.room('joined');
      const before = await served.say(roomId, 'message 0');
      const opened = await served.state(roomId, 'm.room.history_visibility', '', {
        history_visibility: 'world_readable',
      });
      const open = await served.say(roomId, 'message 1');
      const closed = await served.state(roomId, 'm.room.history_visibility', '', {
        history_visibility: 'joined',
      });
      await served.say(roomId, 'message 2');
      const joined = await served.member(roomId, fay, 'join');
      const page = await served.get(`/backfill/${enc(roomId)}?v=${enc(joined)}&limit=100`);
      const whole = eventsIn(page, 'pdus').filter(({ hashMatches }) => hashMatches);
      const ids = whole.map(({ event }) => event.eventId);
      assert.ok([opened, open, closed, joined].every((eventId) => ids.includes(eventId)));
      assert.ok(!ids.includes(before));
    });

    it('a server with many users is looked at as a whole', async () => {
      const roomId = await served.room('joined');
      await served.say(roomId, 'message 0');
      const users = Array.from({ length: 60 }, (_, index) => `@u${index}:${far}`);
      for (const userId of users) await served.member(roomId, userId, 'join');
      const seen = await served.say(roomId, 'message 1');
      for (const userId of users) await served.member(roomId, userId, 'leave');
      const unseen = await served.say(roomId, 'message 2');
      await served.member(roomId, fay, 'join');
      const visible = async (eventId: string) =>
        eventsIn(await served.get(`/event/${enc(eventId)}`), 'pdus')[0]?.hashMatches;
      assert.equal(await visible(seen), true);
      assert.equal(await visible(unseen), false);
    });
  });
});
