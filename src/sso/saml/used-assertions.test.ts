import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { ssoMigrations } from '../migrations.ts';
import { UsedAssertions } from './used-assertions.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('UsedAssertions', () => {
    it('returns false for a used assertion, and rejects when the database fails', async () => {
      const database = await open(ssoMigrations);
      const clock = manualClock();
      const used = new UsedAssertions({ database, clock });
      const assertion = { issuer: 'https://one.client.example', id: 'a', expiresAt: clock.now() + 1_000 };
      assert.deepEqual([await used.use(assertion), await used.use(assertion)], [true, false]);
      const unmigrated = await open([]);
      await assert.rejects(
        new UsedAssertions({ database: unmigrated, clock }).use(assertion),
        /used_assertions/,
      );
    });
  });
});
