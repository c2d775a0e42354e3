import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { UnreliableDatabase } from '../../test/support/databases/unreliable-database.ts';
import { alice, RoomsUnderTest } from '../../test/support/rooms/rooms.ts';
import { systemClock } from '../kernel/clock.ts';
import { TextQuery } from '../kernel/database/index.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { searchMigrations } from './migrations.ts';
import { SearchIndex } from './search-index.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('SearchIndex', () => {
    const openIndex = async () => {
      const { database, engine, streams, ...fixture } = await RoomsUnderTest.open(open, searchMigrations);
      const roomId = await fixture.rooms.creation.create(alice, {});
      const { roomNid } = (await engine.heads.get(roomId))!;
      const unreliable = new UnreliableDatabase(database);
      const deps = { database: unreliable, engine, streams, clock: systemClock, log: silentLogger };
      const index = new SearchIndex(deps);
      const say = (body: string) =>
        fixture.rooms.sending.message({ userId: alice, deviceId: undefined }, roomId, {
          type: 'm.room.message',
          content: { msgtype: 'm.text', body },
        });
      const find = async (word: string) => {
        await index.caughtUp();
        const range = { query: new TextQuery(word), scopes: [roomNid], limit: 10 };
        return (await index.candidates(range)).length;
      };
      return { index, unreliable, say, find };
    };

    it('indexes an event that is sent after the index was opened and before it is started', async () => {
      const { index, say, find } = await openIndex();
      await say('between');
      await index.start();
      assert.equal(await find('between'), 1);
      await index.stop();
    });

    it('indexes events again when writing them to the index has failed', async () => {
      const { index, unreliable, say, find } = await openIndex();
      await index.start();
      assert.equal(await find('doomed'), 0);
      let batches = 0;
      unreliable.fails = () => ++batches === 1;
      await say('doomed');
      assert.equal(await find('doomed'), 1);
      assert.equal(batches, 2);
      await say('later');
      assert.equal(await find('later'), 1);
      await index.stop();
    });
  });
});
