import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { destinationMigrations } from './migrations.ts';
import { writeDestination } from './store.ts';
import type { DestinationTables } from './tables.ts';
import { trimDestinations } from './trim-destinations.ts';

const day = 24 * 3_600_000;
const backoff = 600_000;
const { signal } = new AbortController();

forSelectedDatabases(import.meta.url, (open) => {
  describe('trimDestinations', () => {
    it('forgets servers that have never answered: each a day after its backoff, and those with the oldest failures when there are too many', async () => {
      const database = await open(destinationMigrations);
      const clock = manualClock();
      const add = (serverName: string, spelling: 'ecosystem' | undefined) =>
        database.transaction<DestinationTables, void>((writer) =>
          writeDestination(writer, serverName, {
            failureSince: clock.now(),
            retryLastTs: clock.now(),
            retryInterval: backoff,
            spelling,
          }),
        );
      const stored = async () => {
        const rows = await database
          .reader<DestinationTables>()
          .selectFrom('destinations')
          .select('server_name')
          .orderBy('server_name')
          .execute();
        return rows.map(({ server_name: serverName }) => serverName);
      };
      await add('known.example', 'ecosystem');
      await add('first.example', undefined);
      clock.advance(day + backoff);
      for (const name of ['a.example', 'b.example', 'c.example']) {
        await add(name, undefined);
        clock.advance(1);
      }
      await trimDestinations({ database, clock }, signal);
      assert.deepEqual(await stored(), ['a.example', 'b.example', 'c.example', 'known.example']);
      await trimDestinations({ database, clock }, signal, 2);
      assert.deepEqual(await stored(), ['b.example', 'c.example', 'known.example']);
    });
  });
});
