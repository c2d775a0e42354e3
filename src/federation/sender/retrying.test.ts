import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { bodiesOf, senderStarter, until } from '../../../test/support/other-servers/federation-sender.ts';

const minute = 60_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('retrying transactions', () => {
    const start = senderStarter(open);

    it('repeats a failed transaction with the same id and content until it is acknowledged', async () => {
      const { test, recipients, say } = await start(['a.example']);
      const [a] = recipients;
      a.answer = () => 502;
      await say('1');
      await test.waitsToRetry(1);
      await say('2');
      const [first] = a.arrived.slice(-1);
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => a.messages.includes('2'));
      const [again, ...later] = a.arrived.slice(a.arrived.indexOf(first!) + 1);
      assert.deepEqual([again?.id, again?.pdus], [first?.id, first?.pdus]);
      assert.ok(later.every(({ id }) => id !== first?.id));
      assert.deepEqual(a.messages, ['1', '1', '2']);
    });

    it('repeats a transaction several times before the backoff [option: federation.max_long_retries]', async () => {
      const { test, recipients, say } = await start(['a.example'], { federation: { max_long_retries: 2 } });
      const [a] = recipients;
      await test.idle();
      const before = a.arrived.length;
      a.answer = () => 502;
      await say('1');
      await until(() => {
        test.clock.advance(1_000);
        return test.sender.status.destinations['waiting to retry'] === 1;
      });
      const attempts = a.arrived.slice(before);
      assert.deepEqual([attempts.length, new Set(attempts.map(({ id }) => id)).size], [3, 1]);
    });

    it('sends EDUs once before the backoff to a server that has never answered', async () => {
      const { test, recipients } = await start(['a.example'], { federation: { max_long_retries: 2 } });
      const [a] = recipients;
      await test.idle();
      const before = a.arrived.length;
      a.answer = () => 502;
      await test.rooms.database.transaction((writer) =>
        test.outbox.add(writer, 'a.example', { type: 'm.direct_to_device', content: {} }),
      );
      await until(() => {
        test.clock.advance(1_000);
        return test.sender.status.destinations['waiting to retry'] === 1;
      });
      assert.equal(a.arrived.length - before, 1);
    });

    it('retries at once when a request from the server is recorded between two attempts', async () => {
      const { test, recipients, say } = await start(['a.example'], { federation: { max_long_retries: 2 } });
      const [a] = recipients;
      await test.idle();
      a.answer = () => 502;
      const before = a.arrived.length;
      await say('1');
      await until(() => a.arrived.length === before + 1);
      a.answer = () => 200;
      // Without a request from the server, the next attempt comes after more than three seconds.
      let passed = 0;
      await until(async () => {
        await test.client.destinations.recordSuccess('a.example');
        if (passed < 2_000) test.clock.advance(100);
        passed += 100;
        return a.messages.filter((body) => body === '1').length === 2;
      });
    });

    it('leaves no backoff when this server stops between two attempts, and after the restart sends the unacknowledged events first', async () => {
      const { test, recipients, say } = await start(['a.example'], { federation: { max_long_retries: 2 } });
      const [a] = recipients;
      await test.idle();
      const before = a.arrived.length;
      a.answer = () => 502;
      await say('1');
      await until(() => a.arrived.length > before);
      await test.restart();
      assert.equal(await test.client.destinations.backoffUntil('a.example'), undefined);
      a.answer = () => 200;
      const since = a.messages.length;
      await until(() => {
        test.clock.advance(100);
        return a.messages.length > since;
      });
      await say('2');
      await until(() => a.messages.includes('2'));
      assert.deepEqual(a.messages.slice(since), ['1', '2']);
    });

    it('increases the backoff with each failure [option: federation.destination_min_retry_interval, federation.destination_retry_multiplier, federation.destination_max_retry_interval]', async () => {
      const { test, recipients, say } = await start(['a.example'], {
        federation: {
          max_long_retries: 0,
          destination_min_retry_interval: 10_000,
          destination_retry_multiplier: 20,
          destination_max_retry_interval: 100_000,
        },
      });
      const [a] = recipients;
      await test.idle();
      a.answer = () => 503;
      await say('1');
      const remainingBackoff = async () => {
        await test.waitsToRetry(1);
        return (await test.client.destinations.backoffUntil('a.example'))! - test.clock.now();
      };
      assert.equal(await remainingBackoff(), 10_000);
      test.clock.advance(10_000);
      await until(async () => (await remainingBackoff()) > 10_000);
      assert.equal(await remainingBackoff(), 100_000);
    });

    it('ends the backoff when a request from the server is recorded', async () => {
      const { test, recipients, say } = await start(['a.example']);
      const [a] = recipients;
      a.answer = () => 503;
      await say('1');
      await test.waitsToRetry(1);
      a.answer = () => 200;
      await test.client.destinations.recordSuccess('a.example');
      await until(() => a.arrived.at(-1)?.pdus.length !== 0 && test.sender.status.destinations.sending === 0);
      await until(() => a.messages.filter((body) => body === '1').length === 2);
    });

    it('drops only the event that the server refuses', async () => {
      const { test, recipients, say } = await start(['a.example']);
      const [a] = recipients;
      await test.idle();
      const accepted: string[] = [];
      a.answer = ({ pdus }) => {
        const bodies = bodiesOf(pdus);
        if (bodies.includes('bad')) return 400;
        accepted.push(...bodies);
        return 200;
      };
      await Promise.all(['1', '2', 'bad', '3', '4', '5'].map(say));
      await until(() => accepted.length === 5);
      assert.deepEqual(accepted.toSorted(), ['1', '2', '3', '4', '5']);
    });

    it('backs off from a server that refuses every event, and sends it the newest event when it accepts events again', async () => {
      const { test, recipients, say } = await start(['a.example']);
      const [a] = recipients;
      await test.idle();
      a.answer = ({ pdus }) => (pdus.length > 0 ? 400 : 200);
      const bodies = Array.from({ length: 12 }, (_, index) => String(index));
      await Promise.all(bodies.map(say));
      await test.waitsToRetry(1);
      const requestCount = a.arrived.length;
      await say('last');
      await test.sender.eventsQueued();
      assert.equal(a.arrived.length, requestCount);
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => a.messages.includes('last'));
      await until(() => test.sender.status.destinations['catching up'] === 0);
    });
  });
});
