import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { streamMigrations } from '../../../kernel/streams/index.ts';
import { senderMigrations } from '../migrations.ts';
import type { SenderTables } from '../tables.ts';
import { EduOutbox } from './edu-outbox.ts';
import { trimOutbox } from './trim-outbox.ts';

const day = 24 * 3_600_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('trimOutbox', () => {
    it('deletes EDUs after 30 days, and the oldest EDUs of a destination beyond a limit', async () => {
      const database = await open([...streamMigrations, ...senderMigrations]);
      const clock = manualClock();
      const outbox = await EduOutbox.open({ database, clock, isDestination: () => true });
      const add = (destination: string, ...numbers: readonly number[]) =>
        database.transaction<SenderTables, void>(async (writer) => {
          for (const n of numbers) await outbox.add(writer, destination, { type: 'm.test', content: { n } });
        });
      const storedEdus = async () => {
        const rows = await database
          .reader<SenderTables>()
          .selectFrom('federation_outbox')
          .select(['destination', 'content'])
          .orderBy('destination')
          .orderBy('id')
          .execute();
        return rows.map(({ destination, content }) => `${destination} ${content}`);
      };
      await add('a.example', 1);
      clock.advance(30 * day);
      await add('a.example', 2, 3, 4);
      await add('b.example', 5);
      await trimOutbox({ database, clock }, 4);
      assert.equal((await storedEdus()).length, 5);
      clock.advance(1);
      await trimOutbox({ database, clock }, 2);
      assert.deepEqual(await storedEdus(), ['a.example {"n":3}', 'a.example {"n":4}', 'b.example {"n":5}']);
    });
  });
});
