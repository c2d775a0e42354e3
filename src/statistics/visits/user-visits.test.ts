import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { UnreliableDatabase } from '../../../test/support/databases/unreliable-database.ts';
import { alice, bob } from '../../../test/support/rooms/rooms.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { statisticsMigrations } from '../migrations.ts';
import type { StatisticsTables } from '../tables.ts';
import { UserVisits } from './user-visits.ts';

const minute = 60_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('stored visits (UserVisits)', () => {
    it('stores no visit of an account that is deactivated while its visits are written', async () => {
      const database = new UnreliableDatabase(await open(statisticsMigrations));
      const visits = new UserVisits({
        database,
        clock: manualClock(),
        log: silentLogger,
        caches: plainCaches(manualClock()),
      });
      const gate = Promise.withResolvers<void>();
      database.delay = () => gate.promise;
      const visit = (userId: string) =>
        visits.record({ userId, deviceId: 'D', ip: '::1', userAgent: undefined });
      visit(alice);
      const writing = visits.flush();
      await nextTurn();
      visit(bob);
      for (const userId of [alice, bob]) visits.forget(userId);
      gate.resolve();
      await writing;
      await visits.flush();
      const left = await database.reader<StatisticsTables>().selectFrom('user_visits').selectAll().execute();
      assert.deepEqual(left, []);
    });
  });
});

describe('UserVisits', () => {
  it('writes at most once a minute while writes fail, and records visits beyond the maximum when they are repeated later', async () => {
    const clock = manualClock();
    let fails = true;
    let writes = 0;
    let written: readonly unknown[] = [];
    const batch = async ([{ rows }]: [{ rows: readonly unknown[] }]) => {
      writes += 1;
      if (fails) throw new Error('no database');
      written = rows;
    };
    const visits = new UserVisits({
      database: { batch } as never,
      clock,
      log: silentLogger,
      caches: plainCaches(clock),
    });
    const visit = (number: number) =>
      visits.record({ userId: `@user${number}:test`, deviceId: 'D', ip: '', userAgent: '' } as never);
    for (let number = 0; number < 10_000; number += 1) visit(number);
    await visits.flush();
    const before = writes;
    for (let number = 10_000; number < 10_100; number += 1) visit(number);
    await nextTurn();
    assert.equal(writes, before);
    clock.advance(minute);
    fails = false;
    await visits.flush();
    visit(10_000);
    await visits.flush();
    assert.match(JSON.stringify(written), /^\[\[\d+,"@user10000:test","\w+"\]\]$/);
  });

  it('holds at most 10,000 visits while a write takes long, and records visits beyond the maximum when they are repeated later', async () => {
    const clock = manualClock();
    const sizes: number[] = [];
    let proceed = () => {};
    const batch = ([{ rows }]: [{ rows: readonly unknown[] }]) => {
      sizes.push(rows.length);
      return new Promise<void>((resolve) => {
        proceed = resolve;
      });
    };
    const caches = plainCaches(clock);
    const visits = new UserVisits({ database: { batch } as never, clock, log: silentLogger, caches });
    const visit = (number: number) =>
      visits.record({ userId: `@user${number}:test`, deviceId: 'D', ip: '', userAgent: '' } as never);
    for (let number = 0; number < 10_000; number += 1) visit(number);
    await nextTurn();
    for (let number = 10_000; number < 20_100; number += 1) visit(number);
    proceed();
    await nextTurn();
    const second = visits.flush();
    await nextTurn();
    visit(20_099);
    proceed();
    await second;
    void visits.flush();
    await nextTurn();
    assert.deepEqual(sizes, [10_000, 10_000, 1]);
    caches.close();
  });
});
