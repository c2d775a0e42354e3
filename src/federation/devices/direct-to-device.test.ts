import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { mutated } from '../../../test/support/inputs/mutated.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { E2eeServer, type UserWithKeys } from '../../../test/support/servers/e2ee-server.ts';
import type { AnyWriter } from '../../kernel/database/index.ts';
import type { RateLimit } from '../../kernel/rate-limits/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { ToDevice } from '../../to-device/index.ts';
import type { EduHandler } from '../edus/edu-handlers.ts';
import type { Edu } from '../sender/transactions/edu.ts';
import { DirectToDeviceSender, directToDeviceHandler } from './direct-to-device.ts';
import { ToDevicePace } from './to-device-pace.ts';
import { UnprovenRecipients } from './unproven-recipients.ts';

const bob = '@bob:elsewhere';
const type = 'm.room.encrypted';

forSelectedDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  let alice: UserWithKeys;
  let handle: EduHandler;
  let seenDevices: string[];
  let clock: ManualClock;
  afterEach(() => server.stop());

  /** @param limit the maximum rate of messages from one server */
  async function start(limit?: RateLimit): Promise<void> {
    server = await E2eeServer.start(open);
    alice = await server.user('alice');
    seenDevices = [];
    const sawDevice = async (userId: string, deviceId: string) => {
      seenDevices.push(`${userId} ${deviceId}`);
    };
    clock = manualClock();
    const pace = new ToDevicePace(clock, limit);
    handle = directToDeviceHandler({ toDevice: server.toDevice, serverName: 'test', pace, sawDevice });
  }

  const edu = (messages: unknown, more: JsonObject = {}): JsonObject =>
    ({ sender: bob, type, message_id: 'one', messages, ...more }) as JsonObject;

  const toAlice = (content: unknown, deviceId = alice.deviceId) => ({
    [alice.userId]: { [deviceId]: content },
  });

  async function received({ userId, deviceId } = alice): Promise<unknown[]> {
    const { messages } = await server.queues.pending(userId, deviceId, { upTo: server.position, limit: 100 });
    return messages.map((text) => JSON.parse(text) as unknown);
  }

  describe('m.direct_to_device EDUs of other servers', () => {
    it('queues messages for the named devices, each message id of a sender once', async () => {
      await start();
      const second = await server.device('alice');
      await handle('elsewhere', edu(toAlice({ n: 1 })));
      await handle('elsewhere', edu(toAlice({ n: 'again' })));
      await handle('elsewhere', edu({ ...toAlice({ n: 2 }, '*') }, { message_id: 'two' }));
      assert.deepEqual(await received(), [
        { sender: bob, type, content: { n: 1 } },
        { sender: bob, type, content: { n: 2 } },
      ]);
      assert.deepEqual(await received(second), [{ sender: bob, type, content: { n: 2 } }]);
      await handle('elsewhere', edu(toAlice({ n: 3 }), { sender: '@carol:elsewhere' }));
      assert.equal((await received()).length, 3, 'message ids are unique per sender');
    });

    it('ignores senders who are not users of the origin, and receivers who are not local users', async () => {
      await start();
      await handle('evil', edu(toAlice({})));
      await handle('elsewhere', edu(toAlice({}), { sender: alice.userId }));
      await handle('elsewhere', edu({ '@carol:far': { '*': {} }, ...toAlice({ n: 1 }) }));
      assert.deepEqual(await received(), [{ sender: bob, type, content: { n: 1 } }]);
    });

    it('delays a server that sends more messages than its rate allows, and drops none', async () => {
      await start({ per_second: 2, burst_count: 4 });
      const send = (id: number) => handle('elsewhere', edu(toAlice({ n: id }), { message_id: `m${id}` }));
      for (let id = 1; id <= 4; id++) await send(id);
      let isDone = false;
      const fifth = Promise.resolve(send(5)).then(() => (isDone = true));
      while ((await received()).length < 5) await new Promise(setImmediate);
      for (let turns = 20; turns > 0; turns--) await new Promise(setImmediate);
      assert.equal(isDone, false);
      await handle('far', edu(toAlice({ n: 6 }), { sender: '@carol:far' }));
      assert.equal((await received()).length, 6, 'another server is not delayed');
      clock.advance(500);
      await fifth;
    });

    it('accepts senders with historical user ids of printable ASCII, and ignores senders whose user ids are otherwise invalid', async () => {
      await start();
      const printable = ['@Bob!:elsewhere', '@"bob"~:elsewhere'];
      const invalidIds = ['@:elsewhere', '@böb:elsewhere', '@b b:elsewhere'];
      for (const sender of [...printable, ...invalidIds])
        await handle('elsewhere', edu(toAlice({}), { sender }));
      assert.deepEqual(
        await received(),
        printable.map((sender) => ({ sender, type, content: {} })),
      );
    });

    it('drops messages that are too large or malformed, and queues valid messages of the same EDU', async () => {
      await start();
      const messages = {
        [alice.userId]: { X: 5, '*': { x: 'x'.repeat(70_000) }, [alice.deviceId]: { n: 1 } },
        nobody: {},
        '@x\0:test': { '*': {} },
        '@y:test': 5,
      };
      await handle('elsewhere', edu(messages));
      for (const invalidFields of [
        { type: 5 },
        { type: 'x'.repeat(300) },
        { message_id: '' },
        { message_id: null },
      ]) {
        await handle('elsewhere', edu(toAlice({}), { message_id: 'other', ...invalidFields }));
      }
      assert.deepEqual(await received(), [{ sender: bob, type, content: { n: 1 } }]);
    });

    it('handles arbitrarily mutated EDUs without errors other than MatrixError', async () => {
      await start();
      const content = edu(toAlice({ n: 1 }));
      await fc.assert(
        fc.asyncProperty(mutated(content), async (changed) => {
          await Promise.resolve(handle('elsewhere', changed)).catch((error: Error) =>
            assert.equal(error.name, 'MatrixError'),
          );
        }),
        { numRuns: 100 },
      );
    });

    it("reports the device that a message names as its sender's device", async () => {
      await start();
      const request = { requesting_device_id: 'NEW', action: 'request' };
      await handle('elsewhere', edu(toAlice(request), { type: 'm.room_key_request' }));
      await handle('elsewhere', edu(toAlice({ from_device: 5 }), { type: 'm.key.verification.request' }));
      await handle('elsewhere', edu(toAlice({}), { type: '__proto__', message_id: 'proto' }));
      assert.deepEqual(seenDevices, [`${bob} NEW`]);
    });

    it('remembers message ids for a day, but only about the newest 20,000', async () => {
      await start();
      const { clock, database } = server.server;
      const rows = Array.from({ length: 20_500 }, (_, n) => ({
        origin: 'elsewhere',
        device_id: '',
        digest: `d${n}`,
        sent_at: clock.now() - 30_000 + n,
      }));
      await database.transaction<{ to_device_transactions: (typeof rows)[0] }, void>(async (writer) => {
        for (let start = 0; start < rows.length; start += 5_000) {
          await writer
            .insertInto('to_device_transactions')
            .values(rows.slice(start, start + 5_000))
            .execute();
        }
      });
      for (let n = 0; n < 1_000; n++) await handle('elsewhere', edu(toAlice({ n }), { message_id: `m${n}` }));
      assert.ok((await server.rows('to_device_transactions')) <= 20_001);
      clock.advance(25 * 3_600_000);
      await handle('elsewhere', edu(toAlice({ n: 'late' }), { message_id: 'late' }));
      assert.equal(await server.rows('to_device_transactions'), 1);
    });
  });

  describe('m.direct_to_device EDUs to other servers', () => {
    async function send(
      messages: ReadonlyMap<string, ReadonlyMap<string, JsonObject>>,
      txnId = 'txn',
      unproven: Pick<UnprovenRecipients, 'allowed'> = {
        allowed: async (_writer, _sender, servers) => new Set(servers),
      },
    ): Promise<[string, JsonObject][]> {
      const sent: [string, JsonObject][] = [];
      const outbox = {
        async addForAll(_writer: AnyWriter, destinations: Iterable<string>, { type: kind, content }: Edu) {
          assert.equal(kind, 'm.direct_to_device');
          for (const destination of destinations) sent.push([destination, content]);
        },
      };
      const { streams, clock, slice } = server.server;
      const toDevice = new ToDevice({
        streams,
        clock,
        caches: plainCaches(clock),
        devices: slice.devices,
        queues: server.queues,
        serverName: 'test',
        remote: new DirectToDeviceSender(outbox, unproven),
      });
      const origin = { name: alice.userId, deviceId: alice.deviceId };
      await toDevice.send({ sender: alice.userId, origin, txnId, type, messages });
      return sent;
    }

    it('sends one EDU to each server, with a message_id of at most 32 characters', async () => {
      await start();
      const messages = new Map([
        [bob, new Map([['B', { n: 1 }]])],
        ['@carol:elsewhere', new Map([['*', { n: 2 }]])],
        ['@dan:far', new Map([['D', { n: 3 }]])],
        ['@x:not a server', new Map([['D', { n: 3 }]])],
      ]);
      const sent = await send(messages);
      assert.deepEqual(
        sent.map(([server, content]) => [server, content['messages'], content['sender'], content['type']]),
        [
          [
            'elsewhere',
            { [bob]: { B: { n: 1 } }, '@carol:elsewhere': { '*': { n: 2 } } },
            alice.userId,
            type,
          ],
          ['far', { '@dan:far': { D: { n: 3 } } }, alice.userId, type],
        ],
      );
      for (const [, content] of sent) assert.ok((content['message_id'] as string).length <= 32);
      assert.deepEqual(await send(messages), [], 'a repeated request sends nothing');
    });

    it('splits large messages into several EDUs with different ids, and throws M_TOO_LARGE for a message that fits into no EDU', async () => {
      await start();
      const content = { x: 'x'.repeat(20_000) };
      const devices = new Map(Array.from({ length: 10 }, (_, n) => [`D${n}`, content]));
      const sent = await send(new Map([[bob, devices]]));
      assert.equal(sent.length, 4);
      assert.equal(new Set(sent.map(([, { message_id }]) => message_id)).size, 4);
      const sentDeviceIds = sent.flatMap(([, { messages }]) =>
        Object.keys((messages as JsonObject)[bob] as object),
      );
      assert.deepEqual(sentDeviceIds.sort(), [...devices.keys()]);
      await assert.rejects(send(new Map([[bob, new Map([['D', { x: 'x'.repeat(70_000) }]])]]), 'other'), {
        errcode: 'M_TOO_LARGE',
      });
    });

    it('drops messages of a user to servers that have never answered, beyond 1,000 at once and one more each 100 seconds', async () => {
      await start();
      const answers = async () => new Set(['elsewhere']);
      const unproven = new UnprovenRecipients({ thatAnswered: answers }, clock);
      const messages = new Map([
        ...Array.from({ length: 600 }, (_, n) => [`@x:made-up${n}`, new Map([['D', { n }]])] as const),
        [bob, new Map([['B', { n: 1 }]])] as const,
      ]);
      const serversOf = async (txnId: string) =>
        (await send(messages, txnId, unproven)).map(([destination]) => destination);
      assert.equal((await serversOf('one')).length, 601);
      const second = await serversOf('two');
      assert.deepEqual([second.length, second.at(-1)], [401, 'elsewhere']);
      assert.deepEqual(await serversOf('three'), ['elsewhere']);
      clock.advance(200_000);
      assert.equal((await serversOf('four')).length, 3);
    });
  });
});
