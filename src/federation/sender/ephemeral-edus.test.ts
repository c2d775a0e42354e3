import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  bodiesOf,
  type Recipient,
  senderStarter,
  until,
} from '../../../test/support/other-servers/federation-sender.ts';
import { alice } from '../../../test/support/rooms/rooms.ts';
import type { JsonObject } from '../../protocol/index.ts';

const minute = 60_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('ephemeral EDUs', () => {
    const start = senderStarter(open);

    const typing = (userId: string, isTyping: boolean) => ({
      type: 'm.typing',
      key: userId,
      lifetime: 30_000,
      content: { user_id: userId, typing: isTyping },
    });
    const contents = ({ arrived }: Recipient) =>
      arrived.flatMap(({ edus }) => edus.map(({ content }) => content));

    it('replaces a pending EDU by a newer EDU of the same type and key', async () => {
      const { test, recipients } = await start(['a.example']);
      const [a] = recipients;
      await test.idle();
      test.sender.sendEdu(['a.example', 'test'], typing(alice, true));
      test.sender.sendEdu(['a.example'], typing('@bob:test', true));
      test.sender.sendEdu(['a.example'], typing(alice, false));
      await until(() => contents(a).length === 2);
      assert.deepEqual(contents(a), [
        { user_id: '@bob:test', typing: true },
        { user_id: alice, typing: false },
      ]);
    });

    const receipt = (roomId: string, eventId: string) => ({
      type: 'm.receipt',
      key: roomId,
      lifetime: 60 * minute,
      content: { [roomId]: { 'm.read': { [alice]: { data: { ts: 1 }, event_ids: [eventId] } } } },
      combine: (contents: readonly JsonObject[]) => [Object.assign({}, ...contents) as JsonObject],
    });

    it('sends EDUs after the server has refused an event', async () => {
      const { test, recipients, say } = await start(['a.example']);
      const [a] = recipients;
      await test.idle();
      a.answer = ({ pdus }) => (bodiesOf(pdus).includes('bad') ? 400 : 200);
      await say('bad');
      await until(() => a.messages.includes('bad') && test.sender.status.destinations.sending === 0);
      test.sender.sendEdu(['a.example'], typing(alice, true));
      test.sender.sendEdu(['a.example'], typing('@bob:test', true));
      await until(() => contents(a).length === 2);
      assert.equal(test.sender.status.pendingEdus, 0);
    });

    it('drops only the EDU that the server refuses', async () => {
      const { test, recipients, say } = await start(['a.example']);
      const [a] = recipients;
      await test.idle();
      const isBad = (content: JsonObject) => content['user_id'] === '@bob:test';
      const acceptedBodies: string[] = [];
      const acceptedEdus: JsonObject[] = [];
      a.answer = ({ pdus, edus }) => {
        if (edus.some(({ content }) => isBad(content))) return 400;
        acceptedBodies.push(...bodiesOf(pdus));
        acceptedEdus.push(...edus.map(({ content }) => content));
        return 200;
      };
      const users = ['@first:test', alice, '@bob:test', '@carol:test', '@dave:test'];
      for (const userId of users) test.sender.sendEdu(['a.example'], typing(userId, true));
      await Promise.all(['1', '2', '3'].map(say));
      await until(() => acceptedBodies.length === 3 && acceptedEdus.length === 4);
      assert.deepEqual(acceptedBodies.toSorted(), ['1', '2', '3']);
      assert.deepEqual(acceptedEdus.map((content) => content['user_id']).toSorted(), [
        alice,
        '@carol:test',
        '@dave:test',
        '@first:test',
      ]);
      assert.equal(test.sender.status.pendingEdus, 0);
    });

    it('sends the latest receipts after an outage, and no expired typing EDUs', async () => {
      const { test, recipients } = await start(['a.example']);
      const [a] = recipients;
      await test.idle();
      a.answer = () => 503;
      test.sender.sendEdu(['a.example'], receipt('!one:test', '$1'));
      test.sender.sendEdu(['a.example'], receipt('!two:test', '$2'));
      test.sender.sendEdu(['a.example'], typing(alice, true));
      await test.waitsToRetry(1);
      assert.equal(test.sender.status.pendingEdus, 2, 'typing expires before the next attempt');
      const before = a.arrived.length;
      test.sender.sendEdu(['a.example'], receipt('!two:test', '$3'));
      test.sender.sendEdu(['a.example'], receipt('!three:test', '$4'));
      test.sender.sendEdu(['a.example'], typing(alice, true));
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => test.sender.status.pendingEdus === 0 && a.arrived.length > before);
      await until(() => a.arrived.slice(before).some(({ edus }) => edus.length > 0));
      const edus = a.arrived.slice(before).flatMap((transaction) => transaction.edus);
      const latestContents = [
        receipt('!one:test', '$1').content,
        receipt('!two:test', '$3').content,
        receipt('!three:test', '$4').content,
      ];
      assert.deepEqual(edus, [
        { edu_type: 'm.receipt', content: Object.assign({}, ...latestContents) as JsonObject },
      ]);
    });

    it('keeps at most 500 pending EDUs for an unreachable server, and none that expire before the next attempt', async () => {
      const { test, recipients } = await start(['a.example'], {
        federation: { max_long_retries: 0, destination_min_retry_interval: 50 * minute },
      });
      const [a] = recipients;
      await test.idle();
      a.answer = () => 503;
      test.sender.sendEdu(['a.example'], receipt('!0:test', '$0'));
      await test.waitsToRetry(1);
      for (let i = 0; i < 600; i++) test.sender.sendEdu(['a.example'], receipt(`!${i}:test`, '$1'));
      assert.equal(test.sender.status.pendingEdus, 500);
      const before = a.arrived.length;
      test.clock.advance(50 * minute);
      await until(() => a.arrived.length > before);
      await test.waitsToRetry(1);
      assert.equal(test.sender.status.pendingEdus, 0, 'the EDUs expire before the next attempt');
      test.sender.sendEdu(['a.example'], receipt('!late:test', '$1'));
      assert.equal(test.sender.status.pendingEdus, 0);
    });

    it('sends no expired EDUs', async () => {
      const { test, recipients, say } = await start(['a.example', 'b.example']);
      const [a, b] = recipients;
      await test.idle();
      a.answer = () => 503;
      await say('1');
      await test.waitsToRetry(1);
      test.sender.sendEdu(['a.example'], typing(alice, true));
      test.sender.sendEdu(['b.example'], typing(alice, true), { lazy: true });
      test.clock.advance(50);
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => a.messages.filter((body) => body === '1').length === 2);
      await say('2');
      await until(() => a.messages.includes('2') && b.messages.includes('2'));
      assert.deepEqual([contents(a), contents(b)], [[], []]);
    });
  });
});
