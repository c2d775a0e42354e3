import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { MonthlyUsers } from './monthly-users.ts';
import { UsageLimit } from './usage-limit.ts';

const options = {
  limit_usage_by_mau: true,
  max_mau_value: 1,
  mau_trial_days: 0,
  mau_appservice_trial_days: {},
  mau_limit_reserved_threepids: [{ medium: 'email', address: 'Root@example.org' }],
  admin_contact: null,
  track_appservice_user_ips: false,
};

describe('UsageLimit', () => {
  it('looks up the users with reserved addresses once, also for concurrent requests', async () => {
    const clock = manualClock();
    const monthly = new MonthlyUsers({ clock, database: undefined as never, log: silentLogger });
    let lookUps = 0;
    const findUser = async () => {
      lookUps += 1;
      return '@root:test';
    };
    const limit = new UsageLimit({ clock, monthly, account: async () => undefined, findUser }, options);
    const found = await Promise.all([limit.reservedUsers(), limit.reservedUsers()]);
    assert.deepEqual(found, [new Set(['@root:test']), new Set(['@root:test'])]);
    await limit.reservedUsers();
    assert.equal(lookUps, 1);
  });

  it('reads no account and writes one row per hour for the requests of a counted user, also when the limit is reached', async () => {
    const clock = manualClock();
    const rows: unknown[] = [];
    const batch = async (statements: { rows: unknown[] }[]) => {
      for (const statement of statements) rows.push(...statement.rows);
    };
    const monthly = new MonthlyUsers({ clock, database: { batch } as never, log: silentLogger });
    const unexpected = async () => assert.fail('something was read');
    const limit = new UsageLimit({ clock, monthly, account: unexpected, findUser: unexpected }, options);
    monthly.add('@alice:test', undefined);
    assert.equal(limit.isReached, true);
    const requester = { userId: '@alice:test' } as never;
    for (let seconds = 0; seconds < 7_000; seconds++) {
      await clock.advance(1_000);
      limit.record(requester);
      assert.equal(limit.checkRequester(requester), undefined);
    }
    await monthly.flush();
    assert.equal(rows.length, 2, 'when the user was counted, and after an hour');
  });

  it('does not count users whose accounts are deactivated while the account is read or their row is written', async () => {
    const clock = manualClock();
    const writing = Promise.withResolvers<void>();
    const rows = new Set<string>();
    const batch = async (statements: { sql: string; rows: string[][] }[]) => {
      await writing.promise;
      for (const { sql, rows: changed } of statements)
        for (const [userId] of changed)
          if (sql.startsWith('DELETE')) rows.delete(userId!);
          else rows.add(userId!);
    };
    const monthly = new MonthlyUsers({ clock, database: { batch } as never, log: silentLogger });
    const account = Promise.withResolvers<{ userId: string }>();
    const limit = new UsageLimit(
      { clock, monthly, account: () => account.promise as never, findUser: async () => undefined },
      options,
    );
    monthly.add('@alice:test', undefined);
    const flushed = monthly.flush();
    limit.record({ userId: '@bob:test' });
    // The accounts are deactivated at this moment, which deletes their rows.
    for (const userId of ['@alice:test', '@bob:test']) limit.forget(userId);
    account.resolve({ userId: '@bob:test' });
    writing.resolve();
    await flushed;
    await monthly.flush();
    assert.deepEqual([monthly.count, [...rows]], [0, []]);
  });

  it('appliesTo() returns true for counted users, except users of application services', () => {
    const clock = manualClock();
    const monthly = new MonthlyUsers({ clock, database: undefined as never, log: silentLogger });
    const limit = new UsageLimit(
      { clock, monthly, account: async () => undefined, findUser: async () => undefined },
      options,
    );
    monthly.add('@alice:test', undefined);
    monthly.add('@irc_alice:test', 'irc');
    const users = ['@alice:test', '@irc_alice:test', '@bob:test'];
    assert.deepEqual(
      users.map((user) => limit.appliesTo(user)),
      [true, false, false],
    );
  });

  it('admits registrations with the first max_mau_value reserved addresses when the limit is reached, and refuses the other reserved addresses', () => {
    const clock = manualClock();
    const monthly = new MonthlyUsers({ clock, database: undefined as never, log: silentLogger });
    const addresses = ['root', 'other'].map((name) => ({ medium: 'email', address: `${name}@example.org` }));
    const limit = new UsageLimit(
      { clock, monthly, account: async () => undefined, findUser: async () => undefined },
      { ...options, max_mau_value: 1, mau_limit_reserved_threepids: addresses },
    );
    monthly.add('@alice:test', undefined);
    limit.checkRegistration(addresses.slice(0, 1));
    assert.throws(() => limit.checkRegistration(addresses.slice(1)), {
      errcode: 'M_RESOURCE_LIMIT_EXCEEDED',
    });
  });

  it('admits registrations with a reserved address when the limit is reached', () => {
    const clock = manualClock();
    const monthly = new MonthlyUsers({ clock, database: undefined as never, log: silentLogger });
    const limit = new UsageLimit(
      { clock, monthly, account: async () => undefined, findUser: async () => undefined },
      options,
    );
    limit.checkRegistration([]);
    monthly.add('@alice:test', undefined);
    limit.checkRegistration([{ medium: 'email', address: 'root@example.org' }]);
    const error = { errcode: 'M_RESOURCE_LIMIT_EXCEEDED', extra: { limit_type: 'monthly_active_user' } };
    for (const addresses of [[], [{ medium: 'msisdn', address: 'root@example.org' }]])
      assert.throws(() => limit.checkRegistration(addresses), error);
  });
});
