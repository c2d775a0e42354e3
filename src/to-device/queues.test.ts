import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import type { LoggedInUser } from '../../test/support/servers/accounts-server.ts';
import { plainCaches } from '../../test/support/servers/caches.ts';
import { MessageQueues } from './queues.ts';
import { ToDeviceUnderTest } from './test/to-device-under-test.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let fixture: ToDeviceUnderTest;
  afterEach(() => fixture.server.stop());

  async function start(bounds?: { maxQueueLength: number; checkEvery: number }): Promise<ToDeviceUnderTest> {
    fixture = await ToDeviceUnderTest.start(open, bounds);
    return fixture;
  }

  describe('MessageQueues', () => {
    it('returns messages until they are acknowledged', async () => {
      const { server, queues, put, pending, queuedNumbers, rows } = await start();
      const alice = await server.register('alice');
      for (let n = 0; n < 5; n++) await put(alice, { [alice.userId]: { '*': { n } } });
      const first = await pending(alice, 2);
      assert.deepEqual(
        first.events.map(({ content }) => content!['n']),
        [0, 1],
      );
      assert.ok(first.position < server.streams.current);
      assert.deepEqual((await pending(alice, 2)).events, first.events);
      assert.equal((await pending(alice, 2, first.position)).events[0]!['content']!['n'], 2);
      await queues.acknowledge(alice.userId, alice.deviceId, first.position);
      assert.deepEqual(await queuedNumbers(alice), [2, 3, 4]);
      const remaining = await pending(alice);
      assert.equal(remaining.position, server.streams.current);
      await queues.acknowledge(alice.userId, alice.deviceId, remaining.position);
      assert.deepEqual(await queuedNumbers(alice), []);
      assert.equal(await rows('to_device_messages'), 0);
    });

    it('puts at most one encrypted message of each sender from a short queue into a sync, in the order of arrival', async () => {
      const { server, queues, put, queuedNumbers } = await start();
      const [alice, bob] = [await server.register('alice'), await server.register('bob')];
      const encrypted = 'm.room.encrypted';
      for (const [n, [sender, type]] of [
        [alice, encrypted],
        [bob, encrypted],
        [alice, 'm.x'],
        [alice, 'm.x'],
        [bob, encrypted],
        [bob, 'm.x'],
        [bob, encrypted],
        [alice, encrypted],
      ].entries()) {
        await put(
          sender as LoggedInUser,
          { [bob.userId]: { [bob.deviceId]: { n } } },
          { type: type as string },
        );
      }
      const batches: unknown[] = [];
      const ends: number[] = [];
      for (let after = 0; after < server.streams.current; ) {
        const range = { after, upTo: server.streams.current, limit: 100 };
        const { messages, position } = await queues.forSync(bob.userId, bob.deviceId, range);
        batches.push(messages.map((text) => (JSON.parse(text) as { content: { n: number } }).content.n));
        assert.ok(position > after);
        after = position;
        ends.push(position);
      }
      assert.deepEqual(batches, [
        [0, 1, 2, 3],
        [4, 5],
        [6, 7],
      ]);
      await queues.acknowledge(bob.userId, bob.deviceId, ends[0]!);
      assert.deepEqual(await queuedNumbers(bob), [4, 5, 6, 7]);
    });

    it('puts all messages of a long queue into one sync', async () => {
      const { server, queues, put } = await start();
      const alice = await server.register('alice');
      for (let n = 0; n < 12; n++) {
        await put(alice, { [alice.userId]: { '*': { n } } }, { type: 'm.room.encrypted' });
      }
      const upTo = server.streams.current;
      const sync = (after: number, limit: number) =>
        queues.forSync(alice.userId, alice.deviceId, { after, upTo, limit });
      const whole = await sync(0, 100);
      assert.deepEqual([whole.messages.length, whole.position], [12, upTo]);
      const some = await sync(0, 11);
      assert.deepEqual([some.messages.length, (await sync(some.position, 11)).position], [11, upTo]);
    });

    it('needs no second query for a device with an empty queue', async () => {
      const { server, queues, put, queuedNumbers } = await start();
      const alice = await server.register('alice');
      assert.deepEqual(await queuedNumbers(alice), []);
      const { reads } = server.database.statistics;
      await queuedNumbers(alice);
      await queues.acknowledge(alice.userId, alice.deviceId, server.streams.current);
      assert.equal(server.database.statistics.reads, reads);
      await put(alice, { [alice.userId]: { '*': { n: 1 } } });
      assert.deepEqual(await queuedNumbers(alice), [1]);
    });

    it('finds a message of another process in a queue that was empty before, once the fact of the message has arrived', async () => {
      const { server, put } = await start();
      const alice = await server.register('alice');
      const reading = new MessageQueues(server.database, plainCaches(server.clock));
      const { userId, deviceId } = alice;
      const count = async () => {
        const upTo = server.streams.current;
        return (await reading.pending(userId, deviceId, { upTo, limit: 10 })).messages.length;
      };
      assert.equal(await count(), 0);
      await put(alice, { [userId]: { [deviceId]: { n: 1 } } });
      server.streams.announce(reading.toDeviceStream, { userId, deviceId });
      assert.equal(await count(), 1);
    });

    it('returns messages in the order of their positions while requests send in parallel', async () => {
      const { server, queues, pending, sendOne } = await start();
      const alice = await server.register('alice');
      const receivedNumbers: number[] = [];
      let after = 0;
      let sending = true;
      const reader = async () => {
        while (sending || after < server.streams.current) {
          const { events, position } = await pending(alice, 7, after);
          receivedNumbers.push(...events.map(({ content }) => content!['n'] as unknown as number));
          await queues.acknowledge(alice.userId, alice.deviceId, after);
          after = position;
          await new Promise(setImmediate);
        }
      };
      const sender = async (base: number) => {
        for (let n = 0; n < 20; n++) await sendOne(alice, base + n);
      };
      const reading = reader();
      await Promise.all(Array.from({ length: 10 }, (_, index) => sender(index * 1000)));
      sending = false;
      await reading;
      assert.equal(receivedNumbers.length, 200);
      assert.equal(new Set(receivedNumbers).size, 200);
      for (let index = 0; index < 10; index++) {
        const ofSender = receivedNumbers.filter((n) => Math.floor(n / 1000) === index);
        assert.deepEqual(
          ofSender,
          ofSender.toSorted((a, b) => a - b),
        );
      }
    });

    it('deletes the oldest messages of a queue that exceeds its maximum length', async () => {
      const { server, queuedNumbers, sendOne } = await start({ maxQueueLength: 5, checkEvery: 3 });
      const alice = await server.register('alice');
      for (let n = 0; n < 9; n++) await sendOne(alice, n);
      assert.deepEqual(await queuedNumbers(alice), [4, 5, 6, 7, 8]);
      await sendOne(alice, 9);
      assert.equal((await queuedNumbers(alice)).length, 6);
    });

    it('checks the length of a queue with the next message when the transaction with the check was rolled back', async () => {
      const { server, queues, queuedNumbers, sendOne } = await start({ maxQueueLength: 5, checkEvery: 3 });
      const alice = await server.register('alice');
      for (let n = 0; n < 8; n++) await sendOne(alice, n);
      const { userId, deviceId } = alice;
      const failing = server.streams.write(async (writer, publish) => {
        await queues.appendIn(writer, publish, [{ userId, deviceId, message: '{}' }]);
        throw new Error('rolled back');
      });
      await assert.rejects(failing, /rolled back/);
      await sendOne(alice, 8);
      assert.deepEqual(await queuedNumbers(alice), [4, 5, 6, 7, 8]);
    });
  });
});
