import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import type { User } from '../../accounts/index.ts';
import { Jobs, jobMigrations } from '../../kernel/jobs/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { AccountValidity } from './account-validity.ts';
import { accountValidityMigrations } from './migrations.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('AccountValidity', () => {
    it('does not lock an account that is renewed while its validity ends', async () => {
      const database = await open([...jobMigrations, ...accountValidityMigrations]);
      const clock = manualClock();
      const jobs = new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true });
      /** Resolves when the account is read, which happens when its validity ends and before it is locked. */
      const ending = Promise.withResolvers<void>();
      /** Delays the result of reading the account until the renewal has begun. */
      const renewed = Promise.withResolvers<void>();
      let isLocked = false;
      const validity = new AccountValidity({
        database,
        clock,
        jobs,
        accounts: {
          async getUser() {
            ending.resolve();
            await renewed.promise;
            return { isLocked, isDeactivated: false } as User;
          },
          async setLocked(_userId, locked) {
            isLocked = locked;
          },
        },
      });
      await jobs.start();
      await validity.renew('@ann:test', clock.now() - 1);
      await ending.promise;
      const renewal = validity.renew('@ann:test', clock.now() + 1_000);
      // Without the mutex, the renewal would be stored during these transactions.
      for (let done = 0; done < 10; done += 1) await database.transaction(async () => undefined);
      renewed.resolve();
      await renewal;
      await jobs.settled();
      assert.equal(isLocked, false);
      await jobs.stop();
    });
  });
});
