import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import {
  bodiesOf,
  holdAnswers,
  type SenderUnderTest,
  senderStarter,
  until,
} from '../../../test/support/other-servers/federation-sender.ts';
import { alice } from '../../../test/support/rooms/rooms.ts';
import { buildEvent, type JsonObject, selectAuthEventKeys } from '../../protocol/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';

const minute = 60_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('FederationSender, for a server that has missed events', () => {
    const start = senderStarter(open);

    /** Appends events that all have the same prev_events. */
    const fork = async (test: SenderUnderTest, roomId: string, count: number) => {
      const { engine } = test.rooms;
      const { version, extremities, state } = (await engine.heads.get(roomId))!;
      const prevEventIds = extremities.map(({ eventId }) => eventId);
      const key = newSigningKey('k');
      for (let index = 0; index < count; index++) {
        const content = { msgtype: 'm.text', body: `${index}` };
        const draft = { type: 'm.room.message', sender: alice, content, stateKey: undefined };
        const authEventIds = selectAuthEventKeys(draft, version).map((name) => state.get(name)!.eventId);
        const place = { roomId, depth: 50, originServerTs: index, prevEventIds, authEventIds };
        const built = buildEvent({ ...draft, ...place }, version, { serverName: 'test', key });
        await engine.placement.place(roomId, built);
      }
    };

    it('sends the newest event of each room after an outage, and then new events', async () => {
      const { test, recipients, say } = await start(['a.example']);
      const [a] = recipients;
      const otherRooms = [await test.room('a.example'), await test.room('a.example')];
      await test.idle();
      a.answer = () => 503;
      await say('1');
      await test.waitsToRetry(1);
      const before = a.arrived.length;
      for (const body of ['2', '3', '4']) await say(body);
      for (const roomId of otherRooms) {
        await test.rooms.say(alice, roomId, 'first there');
        await test.rooms.say(alice, roomId, `last in ${roomId}`);
      }
      await test.sender.eventsQueued();
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => a.messages.includes(`last in ${otherRooms[1]}`));
      const receivedBodies = a.arrived.slice(before).flatMap(({ pdus }) => bodiesOf(pdus));
      assert.deepEqual(receivedBodies, ['1', '4', ...otherRooms.map((roomId) => `last in ${roomId}`)]);
      await until(() => test.sender.status.destinations['catching up'] === 0);
      await say('5');
      await until(() => a.messages.includes('5'));
      await test.nothingMissed();
    });

    it('sends a message without its content when it expired during the outage by the default retention policy', async () => {
      const retention = {
        enabled: true,
        default_policy: { max_lifetime: minute / 2 },
        allowed_lifetime_min: null,
        allowed_lifetime_max: null,
      };
      const { test, recipients, say } = await start(['a.example'], {}, { options: { retention } });
      const [a] = recipients;
      await test.idle();
      a.answer = () => 503;
      await say('1');
      await test.waitsToRetry(1);
      await say('2');
      await test.sender.eventsQueued();
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => a.arrived.flatMap(({ pdus }) => bodiesOf(pdus)).includes('undefined'));
      assert.equal(a.messages.includes('2'), false);
    });

    it('sends an event of a third server that follows missed local events', async () => {
      const { test, recipients, say, roomId } = await start(['a.example', 'b.example']);
      const [a] = recipients;
      await test.idle();
      a.answer = () => 503;
      await say('1');
      await test.waitsToRetry(1);
      await say('2');
      await test.rooms.say('@user:b.example', roomId, 'of another server');
      await test.sender.eventsQueued();
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => a.messages.includes('of another server'));
      assert.equal(a.messages.includes('2'), false);
    });

    it('sends the newest events of a room also when the last missed event was purged', async () => {
      const { test, recipients, say, roomId } = await start(['a.example', 'b.example']);
      const [a] = recipients;
      await test.idle();
      a.answer = () => 503;
      await say('1');
      await test.waitsToRetry(1);
      const eventId = await test.rooms.say(alice, roomId, '2');
      await test.rooms.say('@user:b.example', roomId, 'of another server');
      await test.sender.eventsQueued();
      const { engine, streams } = test.rooms;
      const { nid } = (await engine.events.getById(eventId))!;
      await streams.write<RoomTables, void>(async (writer, publish) => {
        await writer.deleteFrom('events').where('nid', '=', nid).execute();
        publish(engine.removals, { kind: 'pruned', eventNids: [nid], roomId });
      });
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => a.messages.includes('of another server'));
      await test.nothingMissed();
    });

    it('sends all local forward extremities of a forked room', async () => {
      const { test, recipients, roomId } = await start(['a.example']);
      const [a] = recipients;
      await test.idle();
      a.answer = () => 503;
      await test.rooms.say(alice, roomId, 'first missed event');
      await test.waitsToRetry(1);
      await fork(test, roomId, 120);
      await test.sender.eventsQueued();
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => a.messages.includes('119'));
      const receivedBodies = a.messages.filter((body) => /^\d+$/.test(body)).map(Number);
      assert.deepEqual(
        receivedBodies,
        Array.from({ length: 120 }, (_, index) => index),
      );
      assert.ok(a.arrived.every(({ pdus }) => pdus.length <= 50));
      await until(() => test.sender.status.destinations['catching up'] === 0);
    });

    it('sends a server the leaves and bans that end invites of its users, even if that server is not in the room', async () => {
      const { test, recipients } = await start(['a.example']);
      const [a] = recipients;
      const roomId = await test.room();
      const { memberships } = test.rooms.rooms;
      const guests = Array.from({ length: 60 }, (_, index) => `@guest${index}:a.example`);
      for (const guest of guests) await memberships.invite(alice, roomId, guest);
      await memberships.ban(alice, roomId, '@never-invited:a.example');
      await test.idle();
      a.answer = () => 503;
      await memberships.kick(alice, roomId, guests[0]!);
      await test.waitsToRetry(1);
      for (const guest of guests.slice(1, 40)) await memberships.kick(alice, roomId, guest);
      for (const guest of guests.slice(40)) await memberships.ban(alice, roomId, guest);
      await test.rooms.say(alice, roomId, 'after the bans');
      await test.sender.eventsQueued();
      a.answer = () => 200;
      test.clock.advance(minute);
      const receivedUsers = () =>
        new Set(a.arrived.flatMap(({ pdus }) => pdus).map((pdu) => (pdu as JsonObject)['state_key']));
      await until(() => guests.every((guest) => receivedUsers().has(guest)));
      assert.equal(receivedUsers().has('@never-invited:a.example'), false);
      assert.ok(a.arrived.every(({ pdus }) => pdus.length <= 50));
      assert.equal(a.messages.includes('after the bans'), false);
      await test.nothingMissed();
    });

    it('stops buffering events in memory for a server that is too slow, and later sends it the newest event', async () => {
      const { test, recipients, say } = await start(['a.example']);
      const [a] = recipients;
      const finish = holdAnswers(a);
      for (let i = 0; i < 12; i++) {
        await Promise.all(Array.from({ length: 50 }, (_, index) => say(`${i}.${index}`)));
      }
      await say('last');
      await test.sender.eventsQueued();
      assert.ok(test.sender.status.pendingPdus <= 100);
      assert.equal(test.sender.status.destinations['catching up'], 1);
      finish();
      await until(() => a.messages.includes('last'));
      assert.ok(a.messages.length < 600);
    });

    it('sends missed events after a restart to the server that has missed them, and nothing to another server', async () => {
      const { test, recipients, say } = await start(['a.example', 'b.example']);
      const [a, b] = recipients;
      a.answer = () => 503;
      await say('1');
      await test.waitsToRetry(1);
      await say('2');
      await until(() => b.messages.includes('2') && test.sender.status.destinations.sending === 0);
      await test.restart();
      const arrivedAtB = b.arrived.length;
      a.answer = () => 200;
      const before = a.arrived.length;
      test.clock.advance(200);
      await test.waitsToRetry(1);
      test.clock.advance(minute);
      await until(() => a.messages.includes('2'));
      assert.deepEqual(
        a.arrived.slice(before).flatMap(({ pdus }) => bodiesOf(pdus)),
        ['2'],
      );
      assert.equal(b.arrived.length, arrivedAtB);
    });

    it('sends after a crash all events that a server has not acknowledged', async () => {
      const { test, recipients, say } = await start(['a.example', 'b.example']);
      const [a, b] = recipients;
      await test.idle();
      await test.nothingMissed();
      holdAnswers(a);
      await say('1');
      await say('2');
      await until(() => b.messages.includes('2') && a.arrived.length > 0);
      const before = a.arrived.length;
      a.answer = () => 200;
      await test.restart(true);
      await until(() =>
        a.arrived
          .slice(before)
          .flatMap(({ pdus }) => bodiesOf(pdus))
          .includes('2'),
      );
      assert.deepEqual(
        a.arrived.slice(before).flatMap(({ pdus }) => bodiesOf(pdus)),
        ['1', '2'],
      );
    });

    it('advances the cursor of the sender also without destinations, so that a restart reads new events only', async () => {
      const { test, say } = await start([]);
      const first = await test.rooms.positionOf(await say('1'));
      const cursor = async () => {
        const reader = test.rooms.database.reader<{ stream_followers: { name: string; position: number } }>();
        return (
          (await reader.selectFrom('stream_followers').select('position').executeTakeFirst())?.position ?? 0
        );
      };
      assert.ok((await cursor()) < first);
      await until(async () => {
        test.clock.advance(1_000);
        await say('more');
        await test.sender.eventsQueued();
        return (await cursor()) >= first;
      });
    });

    it('records on disk an event that stays unacknowledged for long, and deletes the record when the event has arrived', async () => {
      const { test, recipients, say } = await start(['a.example']);
      const [a] = recipients;
      await test.idle();
      const finish = holdAnswers(a);
      await say('1');
      await until(() => a.messages.includes('1'));
      assert.equal(await test.countMissedRooms(), 0);
      await until(async () => {
        test.clock.advance(1_000);
        return (await test.countMissedRooms()) === 1;
      });
      finish();
      await test.nothingMissed();
      assert.deepEqual(a.messages, ['1']);
    });
  });
});
