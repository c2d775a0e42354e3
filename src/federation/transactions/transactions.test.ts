import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { DatabaseOverloaded } from '../../kernel/database/index.ts';
import { Jobs } from '../../kernel/jobs/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { streamMigrations } from '../../kernel/streams/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { EduHandlers } from '../edus/edu-handlers.ts';
import { transactionMigrations } from './migrations.ts';
import { Transactions } from './transactions.ts';

const day = 24 * 3_600_000;

forSelectedDatabases(import.meta.url, (open) => {
  const start = async () => {
    const database = await open([...streamMigrations, ...transactionMigrations]);
    const clock = manualClock();
    return { database, clock, jobs: new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true }) };
  };

  describe('Transactions', () => {
    it('remembers received transactions for a day, and at most a given number of them', async () => {
      const server = await start();
      const { clock } = server;
      const received: string[] = [];
      const incoming = {
        receive: async (origin: string) => {
          received.push(origin);
          return {};
        },
      };
      const transactions = new Transactions({
        ...server,
        incoming,
        eduHandlers: new EduHandlers(silentLogger),
      });
      const send = (txnId: string) => transactions.receive('a.example', txnId, { pdus: [{}] });
      await send('1');
      clock.advance(day);
      await send('2');
      await transactions.forget();
      for (const txnId of ['1', '2']) await send(txnId);
      assert.equal(received.length, 2);
      clock.advance(1);
      await transactions.forget();
      await send('1');
      assert.equal(received.length, 3);
      clock.advance(1);
      await send('3');
      await transactions.forget(2);
      await send('1');
      assert.equal(received.length, 4);
      await send('2');
      assert.equal(received.length, 5);
    });

    it('does not acknowledge a transaction with an EDU that could not be stored, and processes it when it is repeated', async () => {
      const server = await start();
      let isOverloaded = true;
      const handled: unknown[] = [];
      const store = async (_origin: string, { n }: JsonObject) => {
        if (isOverloaded) throw new DatabaseOverloaded('too many writes');
        handled.push(n);
      };
      const eduHandlers = new EduHandlers(silentLogger, [{ 'm.test': store }]);
      const incoming = { receive: async () => ({}) };
      const transactions = new Transactions({ ...server, incoming, eduHandlers });
      const send = () =>
        transactions.receive('a.example', '1', { edus: [{ edu_type: 'm.test', content: { n: 1 } }] });
      await assert.rejects(send(), DatabaseOverloaded);
      isOverloaded = false;
      for (let repetition = 0; repetition < 2; repetition++) {
        assert.deepEqual(JSON.parse(await send()), { pdus: {} });
      }
      assert.deepEqual(handled, [1]);
    });
  });
});
