import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { AccountsServer, type LoggedInUser } from '../../test/support/servers/accounts-server.ts';
import { plainCaches } from '../../test/support/servers/caches.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { OwnedRows } from '../kernel/slices/index.ts';
import { LocalStreams } from '../kernel/streams/index.ts';
import type { JsonObject } from '../protocol/index.ts';
import { toDeviceManifest, toDeviceMigrations, toDeviceRoutes } from './index.ts';
import { maxContentBytes, parseMessageMap } from './message-map.ts';
import { MessageQueues } from './queues.ts';
import { type OutgoingMessages, ToDevice } from './to-device.ts';

const hour = 3_600_000;

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  let queues: MessageQueues;
  let toDevice: ToDevice;
  let remote: { messageId: string; messages: OutgoingMessages['messages'] }[];
  afterEach(() => server.stop());

  async function start(bounds?: { maxQueueLength: number; checkEvery: number }): Promise<void> {
    remote = [];
    server = await AccountsServer.start(open, {
      migrations: toDeviceMigrations,
      extensions: ({ database, caches }) => {
        queues = new MessageQueues(database, caches, bounds);
        return { deviceCleanups: [new OwnedRows([toDeviceManifest])] };
      },
      routes: ({ devices }, { streams, clock, caches }) => {
        const enqueue = async (_writer: unknown, _publish: unknown, message: (typeof remote)[0]) => {
          remote.push(message);
        };
        toDevice = new ToDevice({
          streams,
          clock,
          caches,
          devices,
          queues,
          serverName: 'test',
          remote: { enqueue },
        });
        return toDeviceRoutes(toDevice);
      },
    });
  }

  let transactions = 0;
  const put = (
    { token }: LoggedInUser,
    messages: unknown,
    { type = 'm.x', txnId = `t${transactions++}` } = {},
  ) =>
    server.call('PUT', `/sendToDevice/${encodeURIComponent(type)}/${txnId}`, { token, body: { messages } });
  const pending = async ({ userId, deviceId }: LoggedInUser, limit = 100, after = 0) => {
    const { messages, position } = await queues.pending(userId, deviceId, {
      after,
      upTo: server.streams.current,
      limit,
    });
    return { position, events: messages.map((text) => JSON.parse(text) as Record<string, JsonObject>) };
  };
  const queuedNumbers = async (user: LoggedInUser) =>
    (await pending(user)).events.map(({ content }) => content!['n']);

  describe('to-device messages', () => {
    it('queues a message unchanged for the addressed device', async () => {
      await start();
      const [alice, bob] = [await server.register('alice'), await server.register('bob')];
      const facts: unknown[] = [];
      queues.toDeviceStream.subscribe((fact) => facts.push(fact));
      const content = { text: 'a\0b "ü" 🙂', deep: [{ a: null }] };
      const answer = await put(alice, { [bob.userId]: { [bob.deviceId]: content } }, { type: 'm.a b/"c"' });
      assert.deepEqual([answer.status, answer.body], [200, {}]);
      const event = { sender: alice.userId, type: 'm.a b/"c"', content };
      assert.deepEqual((await pending(bob)).events, [event]);
      assert.deepEqual((await pending(alice)).events, []);
      assert.deepEqual(facts, [{ userId: bob.userId, deviceId: bob.deviceId }]);
    });

    it('queues a message to * for all devices of the user without an own message', async () => {
      await start();
      const alice = await server.register('alice');
      const [second, third] = [await server.login('alice'), await server.login('alice')];
      await put(alice, { [alice.userId]: { '*': { n: 1 }, [third.deviceId]: { n: 2 } } });
      assert.deepEqual(
        [await queuedNumbers(alice), await queuedNumbers(second), await queuedNumbers(third)],
        [[1], [1], [2]],
      );
    });

    it('sends m.room_key_request and its cancellation to all devices of the user', async () => {
      await start();
      const alice = await server.register('alice');
      const second = await server.login('alice');
      const request = { requesting_device_id: alice.deviceId, request_id: '1' };
      const sent = [
        { ...request, action: 'request', body: { algorithm: 'm.megolm.v1.aes-sha2', session_id: 's' } },
        { ...request, action: 'request_cancellation' },
      ];
      for (const content of sent) {
        await put(alice, { [alice.userId]: { '*': content } }, { type: 'm.room_key_request' });
      }
      const expected = sent.map((content) => ({ sender: alice.userId, type: 'm.room_key_request', content }));
      assert.deepEqual((await pending(second)).events, expected);
    });

    it('drops messages to devices that do not exist', async () => {
      await start();
      const alice = await server.register('alice');
      const messages = { [alice.userId]: { NOWHERE: { n: 1 } }, '@nobody:test': { '*': { n: 1 } } };
      assert.equal((await put(alice, messages)).status, 200);
      assert.equal(await rows('to_device_messages'), 0);
    });

    it('returns messages until they are acknowledged', async () => {
      await start();
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
      await start();
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
      await start();
      const alice = await server.register('alice');
      for (let n = 0; n < 12; n++) {
        await put(alice, { [alice.userId]: { '*': { n } } }, { type: 'm.room.encrypted' });
      }
      const upTo = server.streams.current;
      const sync = (after: number, limit: number) =>
        queues.forSync(alice.userId, alice.deviceId, { after, upTo, limit });
      const all = await sync(0, 100);
      assert.deepEqual([all.messages.length, all.position], [12, upTo]);
      const some = await sync(0, 11);
      assert.deepEqual([some.messages.length, (await sync(some.position, 11)).position], [11, upTo]);
    });

    it('needs no query for a device with an empty queue', async () => {
      await start();
      const alice = await server.register('alice');
      assert.deepEqual(await queuedNumbers(alice), []);
      const { reads } = server.database.statistics;
      await queuedNumbers(alice);
      await queues.acknowledge(alice.userId, alice.deviceId, server.streams.current);
      assert.equal(server.database.statistics.reads, reads);
      await put(alice, { [alice.userId]: { '*': { n: 1 } } });
      assert.deepEqual(await queuedNumbers(alice), [1]);
    });

    it('sends messages once when a request is repeated, also in parallel and after a restart', async () => {
      await start();
      const [alice, bob] = [await server.register('alice'), await server.register('bob')];
      const messages = { [alice.userId]: { [alice.deviceId]: { n: 1 } } };
      const again = () => put(alice, messages, { txnId: 'same' });
      assert.deepEqual(
        (await Promise.all([again(), again(), again()])).map(({ status }) => status),
        [200, 200, 200],
      );
      assert.deepEqual(await queuedNumbers(alice), [1]);
      await put(alice, messages, { txnId: 'same', type: 'm.other' });
      await put(bob, messages, { txnId: 'same' });
      assert.deepEqual(await queuedNumbers(alice), [1, 1, 1]);
      const database = await open.restart(server.database);
      const streams = await LocalStreams.open({ database, clock: server.clock, log: silentLogger });
      const caches = plainCaches(server.clock);
      const restarted = new ToDevice({
        streams,
        clock: server.clock,
        caches,
        devices: server.slice.devices,
        queues: new MessageQueues(database, caches),
        serverName: 'test',
      });
      const before = streams.current;
      await restarted.send({
        sender: alice.userId,
        origin: { name: alice.userId, deviceId: alice.deviceId },
        txnId: 'same',
        type: 'm.x',
        messages: parseMessageMap(messages),
      });
      assert.equal(streams.current, before);
    });

    it('finds a message of another process in a queue that was empty before, once the fact of the message has arrived', async () => {
      await start();
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

    it('deletes transaction ids after a day', async () => {
      await start();
      const alice = await server.register('alice');
      await put(alice, {});
      server.clock.advance(25 * hour);
      await put(alice, {});
      assert.equal(await rows('to_device_transactions'), 1);
    });

    it('returns messages in the order of their positions while requests send in parallel', async () => {
      await start();
      const alice = await server.register('alice');
      const seen: number[] = [];
      let after = 0;
      let sending = true;
      const reader = async () => {
        while (sending || after < server.streams.current) {
          const { events, position } = await pending(alice, 7, after);
          seen.push(...events.map(({ content }) => content!['n'] as unknown as number));
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
      assert.equal(seen.length, 200);
      assert.equal(new Set(seen).size, 200);
      for (let index = 0; index < 10; index++) {
        const ofSender = seen.filter((n) => Math.floor(n / 1000) === index);
        assert.deepEqual(
          ofSender,
          ofSender.toSorted((a, b) => a - b),
        );
      }
    });

    it('deletes the oldest messages of a queue that exceeds its maximum length', async () => {
      await start({ maxQueueLength: 5, checkEvery: 3 });
      const alice = await server.register('alice');
      for (let n = 0; n < 9; n++) await sendOne(alice, n);
      assert.deepEqual(await queuedNumbers(alice), [4, 5, 6, 7, 8]);
      await sendOne(alice, 9);
      assert.equal((await queuedNumbers(alice)).length, 6);
    });

    it('checks the length of a queue with the next message when the transaction with the check was rolled back', async () => {
      await start({ maxQueueLength: 5, checkEvery: 3 });
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

    it('sends messages to 2,000 devices in one transaction', async () => {
      await start();
      const alice = await server.register('alice');
      const deviceIds = Array.from({ length: 2000 }, (_, n) => `D${n}`);
      await server.streams.write(async (writer, publish) => {
        for (const deviceId of deviceIds) {
          const device = { userId: alice.userId, deviceId, displayName: undefined };
          await server.slice.devices.ensure(writer, publish, device);
        }
      });
      const { transactions: before } = server.database.statistics;
      const messages = Object.fromEntries(deviceIds.map((id) => [id, { n: id }]));
      assert.equal((await put(alice, { [alice.userId]: messages })).status, 200);
      assert.ok(server.database.statistics.transactions - before <= 2);
      assert.deepEqual(await queuedNumbers({ ...alice, deviceId: 'D1999' }), ['D1999']);
      assert.equal(await rows('to_device_messages'), 2000);
    });

    it('deletes the messages and transaction ids of a deleted device', async () => {
      await start();
      const alice = await server.register('alice');
      const second = await server.login('alice');
      await put(second, { [alice.userId]: { '*': { n: 1 } } });
      await server.call('POST', '/logout', { token: second.token, body: {} });
      assert.deepEqual(await queuedNumbers(second), []);
      assert.deepEqual(await queuedNumbers(alice), [1]);
      assert.equal(await rows('to_device_transactions'), 0);
      await server.slice.accounts.deactivate(alice.userId, { erase: false, byAdmin: false });
      assert.equal(await rows('to_device_messages'), 0);
    });

    it('passes messages for remote users to the federation, and those of a repeated request once', async () => {
      await start();
      const alice = await server.register('alice');
      const txnId = 'once';
      const messages = { '@bob:elsewhere': { '*': { n: 1 } }, [alice.userId]: { '*': { n: 2 } } };
      await put(alice, messages, { txnId });
      await put(alice, messages, { txnId });
      assert.equal(remote.length, 1);
      assert.deepEqual([...remote[0]!.messages.keys()], ['@bob:elsewhere']);
      assert.deepEqual(await queuedNumbers(alice), [2]);
    });

    it('rejects malformed messages with 400, and large ones with 413', async () => {
      await start();
      const alice = await server.register('alice');
      const toOwnDevice = (content: unknown) => ({ [alice.userId]: { [alice.deviceId]: content } });
      const cases: [unknown, number, string][] = [
        [undefined, 400, 'M_BAD_JSON'],
        [[], 400, 'M_BAD_JSON'],
        [{ alice: { '*': {} } }, 400, 'M_INVALID_PARAM'],
        [{ '@a\0:test': { '*': {} } }, 400, 'M_INVALID_PARAM'],
        [{ [alice.userId]: [] }, 400, 'M_INVALID_PARAM'],
        [toOwnDevice('text'), 400, 'M_INVALID_PARAM'],
        [toOwnDevice({ n: 'x'.repeat(maxContentBytes) }), 413, 'M_TOO_LARGE'],
        [toOwnDevice({ n: 'x'.repeat(5 * 1024 * 1024) }), 413, 'M_TOO_LARGE'],
      ];
      for (const [messages, status, code] of cases) {
        const answer = await put(alice, messages);
        assert.deepEqual([answer.status, answer.body['errcode']], [status, code]);
      }
      const longType = await put(alice, {}, { type: 'x'.repeat(256) });
      assert.equal(longType.body['errcode'], 'M_INVALID_PARAM');
      assert.equal(await rows('to_device_messages'), 0);
      assert.equal(await rows('to_device_transactions'), 0);
    });

    const sendOne = (to: LoggedInUser, n: number) =>
      toDevice.send({
        sender: to.userId,
        origin: { name: to.userId, deviceId: to.deviceId },
        txnId: `n${n}`,
        type: 'm.x',
        messages: new Map([[to.userId, new Map([['*', { n }]])]]),
      });
    const rows = async (table: 'to_device_messages' | 'to_device_transactions') => {
      const reader = server.database.reader<Record<typeof table, { n: number }>>();
      const counted = await reader
        .selectFrom(table)
        .select(({ fn }) => fn.countAll().as('n'))
        .executeTakeFirstOrThrow();
      return Number(counted.n);
    };
  });
});
