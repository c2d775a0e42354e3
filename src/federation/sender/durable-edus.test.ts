import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  type Recipient,
  type SenderUnderTest,
  senderStarter,
  until,
} from '../../../test/support/other-servers/federation-sender.ts';
import type { SenderTables } from './tables.ts';

const minute = 60_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('durable EDUs in the outbox', () => {
    const start = senderStarter(open);

    const edu = (number: number) => ({
      type: 'm.direct_to_device',
      content: { message_id: String(number) },
    });
    const add = (test: SenderUnderTest, ...numbers: readonly number[]) =>
      test.rooms.database.transaction<SenderTables, void>(async (writer) => {
        for (const number of numbers) await test.outbox.add(writer, 'a.example', edu(number));
      });
    const idsIn = ({ arrived }: Recipient) =>
      arrived.flatMap(({ edus }) => edus.map(({ content }) => Number(content['message_id'])));
    const countStored = async (test: SenderUnderTest) => {
      const reader = test.rooms.database.reader<SenderTables>();
      return (await reader.selectFrom('federation_outbox').selectAll().execute()).length;
    };

    it('sends EDUs in order, at most 100 at a time, and deletes them', async () => {
      const { test, recipients } = await start(['a.example']);
      const [a] = recipients;
      const numbers = Array.from({ length: 250 }, (_, index) => index);
      await add(test, ...numbers);
      await until(async () => (await countStored(test)) === 0);
      assert.deepEqual(idsIn(a), numbers);
      assert.ok(a.arrived.every(({ edus }) => edus.length <= 100));
    });

    it('sends no EDU whose database transaction is rolled back', async () => {
      const { test, recipients } = await start(['a.example']);
      const [a] = recipients;
      const failing = test.rooms.database.transaction<SenderTables, void>(async (writer) => {
        await test.outbox.add(writer, 'a.example', edu(1));
        throw new Error('rolled back');
      });
      await assert.rejects(failing, /rolled back/);
      await add(test, 2);
      await until(() => idsIn(a).length > 0);
      assert.deepEqual(idsIn(a), [2]);
    });

    it('stores EDUs for an unreachable server, also across a restart', async () => {
      const { test, recipients } = await start(['a.example']);
      const [a] = recipients;
      await test.idle();
      a.answer = () => 503;
      await add(test, 1);
      await test.waitsToRetry(1);
      await add(test, 2);
      await test.restart();
      const before = a.arrived.length;
      await test.waitsToRetry(1);
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(async () => (await countStored(test)) === 0);
      assert.deepEqual(
        a.arrived.slice(before).flatMap(({ edus }) => edus.map(({ content }) => content['message_id'])),
        ['1', '2'],
      );
    });

    it('repeats a transaction with the same id when the response was lost', async () => {
      const { test, recipients } = await start(['a.example']);
      const [a] = recipients;
      await test.idle();
      a.answer = () => 502;
      await add(test, 1);
      await test.waitsToRetry(1);
      a.answer = () => 200;
      await add(test, 2);
      test.clock.advance(minute);
      await until(async () => (await countStored(test)) === 0);
      const withEdus = a.arrived.filter(({ edus }) => edus.length > 0);
      assert.deepEqual(
        withEdus.map(({ edus }) => edus.map(({ content }) => content['message_id'])),
        [['1'], ['1'], ['2']],
      );
      assert.equal(withEdus[0]?.id, withEdus[1]?.id);
    });

    it('stores no EDUs for servers that federation_domain_whitelist excludes', async () => {
      const { test } = await start([], { federation_domain_whitelist: ['b.example'] });
      await add(test, 1);
      assert.equal(await countStored(test), 0);
    });
  });
});
