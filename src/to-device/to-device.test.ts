import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { plainCaches } from '../../test/support/servers/caches.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { LocalStreams } from '../kernel/streams/index.ts';
import { maxContentBytes, parseMessageMap } from './message-map.ts';
import { MessageQueues } from './queues.ts';
import { ToDeviceUnderTest } from './test/to-device-under-test.ts';
import { ToDevice } from './to-device.ts';

const hour = 3_600_000;

forSelectedDatabases(import.meta.url, (open) => {
  let fixture: ToDeviceUnderTest;
  afterEach(() => fixture.server.stop());

  async function start(): Promise<ToDeviceUnderTest> {
    fixture = await ToDeviceUnderTest.start(open);
    return fixture;
  }

  describe('to-device messages', () => {
    it('queues a message unchanged for the addressed device', async () => {
      const { server, queues, put, pending } = await start();
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

    it('queues a message to * for all devices of the user that have no message of their own', async () => {
      const { server, put, queuedNumbers } = await start();
      const alice = await server.register('alice');
      const [second, third] = [await server.login('alice'), await server.login('alice')];
      await put(alice, { [alice.userId]: { '*': { n: 1 }, [third.deviceId]: { n: 2 } } });
      assert.deepEqual(
        [await queuedNumbers(alice), await queuedNumbers(second), await queuedNumbers(third)],
        [[1], [1], [2]],
      );
    });

    it('sends m.room_key_request and its cancellation to all devices of the user', async () => {
      const { server, put, pending } = await start();
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
      const { server, put, rows } = await start();
      const alice = await server.register('alice');
      const messages = { [alice.userId]: { NOWHERE: { n: 1 } }, '@nobody:test': { '*': { n: 1 } } };
      assert.equal((await put(alice, messages)).status, 200);
      assert.equal(await rows('to_device_messages'), 0);
    });

    it('sends messages once when a request is repeated, also in parallel and after a restart', async () => {
      const { server, put, queuedNumbers } = await start();
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

    it('deletes transaction ids after a day', async () => {
      const { server, put, rows } = await start();
      const alice = await server.register('alice');
      await put(alice, {});
      server.clock.advance(25 * hour);
      await put(alice, {});
      assert.equal(await rows('to_device_transactions'), 1);
    });

    it('sends messages to 2,000 devices in at most two transactions', async () => {
      const { server, put, queuedNumbers, rows } = await start();
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
      const { server, put, queuedNumbers, rows } = await start();
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

    it('passes messages for remote users to the federation, and does not pass the messages of a repeated request again', async () => {
      const { server, remote, put, queuedNumbers } = await start();
      const alice = await server.register('alice');
      const txnId = 'once';
      const messages = { '@bob:elsewhere': { '*': { n: 1 } }, [alice.userId]: { '*': { n: 2 } } };
      await put(alice, messages, { txnId });
      await put(alice, messages, { txnId });
      assert.equal(remote.length, 1);
      assert.deepEqual([...remote[0]!.messages.keys()], ['@bob:elsewhere']);
      assert.deepEqual(await queuedNumbers(alice), [2]);
    });

    it('rejects malformed messages with 400, and large messages with 413', async () => {
      const { server, put, rows } = await start();
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
  });
});
