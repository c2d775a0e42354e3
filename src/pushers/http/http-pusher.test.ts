import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { commonTestAuthority } from '../../../test/support/network/test-authority.ts';
import type { TestUser } from '../../../test/support/servers/server.ts';
import { PushGateway } from '../test/push-gateway.ts';
import { ServerWithPushers } from '../test/server-with-pushers.ts';

const localhost = { port: 0, type: 'http' as const, bind_addresses: ['127.0.0.1'] };

for (const database of selectedDatabases(import.meta.url)) {
  describe(`notifications through push gateways (${database})`, () => {
    let fixture: ServerWithPushers;
    let anna: TestUser;
    let count = 0;
    before(async () => {
      fixture = await ServerWithPushers.start(database, {
        observability: { enable_metrics: true },
        http: { listeners: [{ ...localhost, resources: [{ names: ['client', 'metrics'] }] }] },
        rooms: { retention: { enabled: true } } as never,
      });
      anna = await fixture.server.register('anna');
    });
    after(() => fixture.stop());

    /** Registers a user whose pusher sends to a new gateway, in a room with Anna. */
    const start = async (pusher: object = {}, tls?: { name: string }) => {
      const gateway = await PushGateway.start(tls && commonTestAuthority().issue(tls.name));
      const user = await fixture.server.register(`user${++count}`);
      const roomId = await fixture.room(anna, [user]);
      const pushkey = `key ${count}`;
      const data = { url: gateway.url(tls?.name), format: 'event_id_only' };
      await fixture.addPusher(user, pushkey, { data, ...pusher });
      return { gateway, user, roomId, pushkey };
    };

    it('for the format event_id_only, sends ids, counts, the priority, and the data of the pusher without the URL', async () => {
      const { gateway, roomId, pushkey } = await start();
      const eventId = await fixture.say(anna, roomId, 'Hello');
      assert.deepEqual(await gateway.notification(0), {
        event_id: eventId,
        room_id: roomId,
        prio: 'high',
        counts: { unread: 1 },
        devices: [
          {
            app_id: 'org.example.app',
            pushkey,
            pushkey_ts: Math.floor(fixture.clock.now() / 1_000),
            data: { format: 'event_id_only' },
          },
        ],
      });
      await gateway.stop();
    });

    it('for a pusher without a format, sends over TLS the content, the names of sender and room, and the tweaks', async () => {
      const { gateway, user, roomId } = await start({}, { name: 'push.example' });
      const data = { url: gateway.url('push.example'), more: { a: 1 } };
      await fixture.addPusher(user, `key ${count}`, { data });
      await fixture.server.api(
        'PUT',
        `/_matrix/client/v3/rooms/${encodeURIComponent(roomId)}/state/m.room.name/`,
        {
          token: anna.token,
          body: { name: 'Mission Control' },
        },
      );
      const content = { msgtype: 'm.text', body: 'Hello', 'm.mentions': { user_ids: [user.userId] } };
      const eventId = await fixture.send(anna, roomId, content);
      const { devices, ...notification } = await gateway.notification(0);
      assert.deepEqual(notification, {
        event_id: eventId,
        id: eventId,
        room_id: roomId,
        type: 'm.room.message',
        sender: anna.userId,
        sender_display_name: 'anna',
        room_name: 'Mission Control',
        prio: 'high',
        counts: { unread: 1 },
        content,
      });
      assert.deepEqual(devices[0]!.data, { more: { a: 1 } });
      assert.deepEqual(devices[0]!.tweaks, { highlight: true, sound: 'default' });
      await gateway.stop();
    });

    it('notifies the invited user of an invite', async () => {
      const { gateway, user, pushkey } = await start();
      await fixture.addPusher(user, pushkey, { data: { url: gateway.url() } });
      await fixture.room(anna, [], { preset: 'private_chat', invite: [user.userId] });
      const invite = await gateway.notification(0);
      assert.deepEqual(
        [invite['type'], invite['membership'], invite['user_is_target'], invite.counts],
        ['m.room.member', 'invite', true, { unread: 1 }],
      );
      await gateway.stop();
    });

    it('sends a lower count when the user has read events, and no notification of events that were read while they were pending', async () => {
      const { gateway, user, roomId } = await start();
      gateway.behaviour = 'never answer';
      const first = await fixture.say(anna, roomId, 'one');
      await gateway.attempted(1);
      const second = await fixture.say(anna, roomId, 'two');
      gateway.behaviour = 'accept';
      await fixture.read(user, roomId, second);
      // The request for the first event ends at its timeout; by then both events are read.
      fixture.clock.advance(30_000);
      await untilRetry(() => gateway.received.length > 0);
      const [notification, ...otherNotifications] = gateway.received;
      assert.deepEqual(
        [notification?.event_id, notification?.counts, otherNotifications],
        [undefined, { unread: 0 }, []],
      );
      const third = await fixture.say(anna, roomId, 'three');
      assert.deepEqual((await gateway.notification(1)).event_id, third);
      assert.notEqual(first, third);
      await fixture.read(user, roomId, third);
      assert.deepEqual((await gateway.notification(2)).counts, { unread: 0 });
      await gateway.stop();
    });

    it('sends no notification of a message that has expired by the retention policy of its room while it was pending', async () => {
      const { gateway, roomId } = await start();
      const path = `/_matrix/client/v3/rooms/${encodeURIComponent(roomId)}/state/m.room.retention/`;
      await fixture.server.api('PUT', path, { token: anna.token, body: { max_lifetime: 3_600_000 } });
      gateway.behaviour = 'fail';
      const old = await fixture.say(anna, roomId, 'old');
      await gateway.attempted(1);
      fixture.clock.advance(2 * 3_600_000);
      gateway.behaviour = 'accept';
      const fresh = await fixture.say(anna, roomId, 'fresh');
      const received = () => gateway.received.map(({ event_id }) => event_id);
      await untilRetry(() => received().includes(fresh));
      assert.ok(!received().includes(old));
      await gateway.stop();
    });

    it('keeps the order of events while a gateway fails, and retries with a growing backoff that survives a restart', async () => {
      const { gateway, roomId } = await start();
      gateway.behaviour = 'fail';
      const before = fixture.warnings.length;
      const backoffs = () =>
        fixture.warnings.slice(before).flatMap(({ retryIn }) => (retryIn === undefined ? [] : [retryIn]));
      const sent = [await fixture.say(anna, roomId, 'one'), await fixture.say(anna, roomId, 'two')];
      for (let failures = 1; failures <= 4; failures++) {
        // A server that stops while it receives an answer does not know that the gateway fails.
        await eventually('the failure', () => backoffs().length === failures);
        if (failures < 4) await untilRetry(() => gateway.attempts > failures);
      }
      assert.deepEqual(backoffs(), [1_000, 2_000, 4_000, 8_000]);
      await fixture.server.restart();
      const { attempts } = gateway;
      gateway.behaviour = 'accept';
      sent.push(await fixture.say(anna, roomId, 'three'));
      assert.equal(gateway.attempts, attempts);
      await untilRetry(() => gateway.received.length === 3);
      assert.deepEqual(
        gateway.received.map((notification) => notification.event_id),
        sent,
      );
      await gateway.stop();
    });

    it('sends to several gateways at once: while two gateways never answer, a third gateway receives all events over one connection', async () => {
      const unresponsive = [await start(), await start()];
      const { gateway, user } = await start();
      for (const hung of unresponsive) hung.gateway.behaviour = 'never answer';
      const roomId = await fixture.room(anna, [...unresponsive.map(({ user: hung }) => hung), user]);
      for (let index = 0; index < 5; index++) await fixture.say(anna, roomId, `message ${index}`);
      await gateway.notification(4);
      assert.equal(gateway.connections, 1);
      for (const hung of unresponsive) {
        await hung.gateway.attempted(1);
        const { received, open, maxOpen } = hung.gateway;
        assert.deepEqual([received.length, open, maxOpen], [0, 1, 1]);
      }
      await Promise.all([...unresponsive.map((hung) => hung.gateway.stop()), gateway.stop()]);
    });

    it('opens no connection to a gateway whose name resolves to an address in ip_range_blacklist, and sends the events once the name resolves to another address', async () => {
      fixture.resolver.hosts.set('inside.example', ['127.0.0.2']);
      const { gateway, roomId } = await start({}, { name: 'inside.example' });
      let connections = 0;
      const blockedServer = createServer(() => connections++);
      const { port } = new URL(gateway.url());
      await new Promise<void>((resolve) => blockedServer.listen(Number(port), '127.0.0.2', resolve));
      const sent = [await fixture.say(anna, roomId, 'one'), await fixture.say(anna, roomId, 'two')];
      const attempts = () =>
        fixture.resolver.lookedUpNames.filter((name) => name === 'inside.example').length;
      await untilRetry(() => attempts() >= 3);
      fixture.resolver.hosts.set('inside.example', ['127.0.0.1']);
      await untilRetry(() => gateway.received.length === 2);
      assert.deepEqual([gateway.received.map(({ event_id }) => event_id), connections], [sent, 0]);
      await new Promise((resolve) => blockedServer.close(resolve));
      await gateway.stop();
    });

    it('sends the unread count to the new gateway of a changed pusher, although the earlier gateway has received the same count', async () => {
      const { gateway, user, roomId, pushkey } = await start();
      const otherGateway = await PushGateway.start();
      const first = await fixture.say(anna, roomId, 'one');
      await fixture.say(anna, roomId, 'two');
      assert.deepEqual((await gateway.notification(1)).counts, { unread: 1 });
      await fixture.addPusher(user, pushkey, { data: { url: otherGateway.url(), format: 'event_id_only' } });
      // The room stays unread.
      await fixture.read(user, roomId, first);
      const sent = await otherGateway.notification(0);
      assert.deepEqual([sent.event_id, sent.counts], [undefined, { unread: 1 }]);
      await gateway.stop();
      await otherGateway.stop();
    });

    it('deletes a pusher whose push key the gateway rejects', async () => {
      const { gateway, user, roomId, pushkey } = await start();
      gateway.rejected.add(pushkey);
      await fixture.say(anna, roomId, 'one');
      await gateway.notification(0);
      while ((await fixture.pushkeysOf(user)).length > 0) await new Promise(setImmediate);
      await fixture.say(anna, roomId, 'two');
      assert.equal(gateway.attempts, 1);
      await gateway.stop();
    });

    it('sends no notifications of events that were sent while a pusher was disabled, not even after it is enabled again', async () => {
      const { gateway, user, roomId, pushkey } = await start({ 'org.matrix.msc3881.enabled': false });
      await fixture.say(anna, roomId, 'one');
      // The notification of a later event to another user shows that the first event was processed.
      const other = await start();
      await fixture.say(anna, other.roomId, 'two');
      await other.gateway.notification(0);
      await fixture.addPusher(user, pushkey, { data: { url: gateway.url(), format: 'event_id_only' } });
      const second = await fixture.say(anna, roomId, 'three');
      assert.equal((await gateway.notification(0)).event_id, second);
      await Promise.all([gateway.stop(), other.gateway.stop()]);
    });

    it('sends to all pushers of a user, without counts where disable_badge_count is set, and nothing for events that the user sent', async () => {
      const { gateway, user, roomId } = await start();
      await fixture.addPusher(user, 'another key', {
        data: { url: gateway.url(), 'org.matrix.msc4076.disable_badge_count': true },
      });
      await fixture.say(user, roomId, 'own');
      const eventId = await fixture.say(anna, roomId, 'of Anna');
      await gateway.notification(1);
      assert.deepEqual([gateway.received[0]!.event_id, gateway.received[1]!.event_id], [eventId, eventId]);
      const withoutCount = gateway.received.find(({ devices }) => devices[0]!.pushkey === 'another key')!;
      assert.equal(withoutCount.counts, undefined);
      await gateway.stop();
    });

    it('sends at once when a client sets the pusher again while a request fails, and counts the notification that the gateway may receive twice', async () => {
      const repetitions = await fixture.measurement('server_push_repeats_total');
      const { gateway, roomId, user, pushkey } = await start();
      gateway.behaviour = 'never answer';
      const eventId = await fixture.say(anna, roomId, 'one');
      await gateway.attempted(1);
      gateway.behaviour = 'accept';
      fixture.clock.advance(1);
      await fixture.addPusher(user, pushkey, { data: { url: gateway.url(), format: 'event_id_only' } });
      fixture.clock.advance(30_000);
      assert.equal((await gateway.notification(0)).event_id, eventId);
      assert.equal(await fixture.measurement('server_push_repeats_total'), repetitions + 1);
      await gateway.stop();
    });

    /** Advances the clock in small steps, so that retries take place, until the condition holds. */
    const untilRetry = async (condition: () => boolean) => {
      for (const end = performance.now() + 120_000; !condition(); ) {
        assert.ok(performance.now() < end, 'no retry');
        fixture.clock.advance(50);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    };
  });

  describe(`options of notifications (${database})`, () => {
    let fixture: ServerWithPushers;
    after(() => fixture.stop());

    it('sends ids only, counts messages, and delays notifications [option: push.include_content, push.group_unread_count_by_room, push.jitter_delay]', async () => {
      fixture = await ServerWithPushers.start(database, {
        push: {
          push: { include_content: false, group_unread_count_by_room: false, jitter_delay: 60_000 },
        },
      });
      const [anna, ben] = [await fixture.server.register('anna'), await fixture.server.register('ben')];
      const roomId = await fixture.room(anna, [ben]);
      await fixture.addPusher(ben, 'key', { data: { url: fixture.gateway.url() } });
      await fixture.say(anna, roomId, 'one');
      await fixture.say(anna, roomId, 'two');
      assert.equal(fixture.gateway.attempts, 0);
      await eventually('both notifications', () => {
        fixture.clock.advance(5_000);
        return fixture.gateway.received.length >= 2;
      });
      const last = await fixture.gateway.notification(1);
      assert.deepEqual(Object.keys(last).sort(), ['counts', 'devices', 'event_id', 'prio', 'room_id']);
      assert.deepEqual([last.counts, last.devices[0]!.tweaks], [{ unread: 2 }, undefined]);
    });
  });

  describe(`push.enabled: false (${database})`, () => {
    let fixture: ServerWithPushers;
    after(() => fixture.stop());

    it('sends no notifications with push.enabled: false, and still stores pushers [option: push.enabled]', async () => {
      fixture = await ServerWithPushers.start(database, { push: { push: { enabled: false } } });
      const [anna, ben] = [await fixture.server.register('anna'), await fixture.server.register('ben')];
      const roomId = await fixture.room(anna, [ben]);
      await fixture.addPusher(ben, 'key');
      await fixture.say(anna, roomId, 'one');
      await fixture.server.restart();
      assert.deepEqual([await fixture.pushkeysOf(ben), fixture.gateway.attempts], [['key'], 0]);
    });

    it('sends no notifications of events from before push was enabled again', async () => {
      const options = { enabled: true };
      const restarted = await ServerWithPushers.start(database, { push: { push: options } });
      const [anna, ben] = [await restarted.server.register('anna'), await restarted.server.register('ben')];
      const roomId = await restarted.room(anna, [ben]);
      await restarted.addPusher(ben, 'key');
      options.enabled = false;
      await restarted.server.restart();
      await restarted.say(anna, roomId, 'while off');
      options.enabled = true;
      await restarted.server.restart();
      const eventId = await restarted.say(anna, roomId, 'while on');
      assert.equal((await restarted.gateway.notification(0)).event_id, eventId);
      await restarted.stop();
    });
  });
}
