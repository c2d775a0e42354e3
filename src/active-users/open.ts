import { type AccountChecks, type AccountLifecycle, AccountReader } from '../accounts/index.ts';
import type { Clock } from '../kernel/clock.ts';
import { type AnyWriter, afterCommit, type Database } from '../kernel/database/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { Logger, Metrics } from '../kernel/observability/index.ts';
import { reportActiveUsers } from './metrics.ts';
import { MonthlyUsers } from './monthly-users.ts';
import { UsageLimit, type UsageLimitDeps, type UsageLimitOptions } from './usage-limit.ts';

export interface ActiveUsersDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly log: Logger;
  readonly metrics: Metrics | undefined;
  readonly findUser: UsageLimitDeps['findUser'];
}

export interface ActiveUsersOptions extends UsageLimitOptions {
  /** Whether users are counted even when their number is not limited. */
  readonly mau_stats_only: boolean;
}

/** The count and the limit of monthly active users. */
export interface ActiveUsers {
  readonly limit: UsageLimit;
  /** Refuses logins and registrations beyond the limit. */
  readonly checks: AccountChecks;
  readonly lifecycleHooks: readonly AccountLifecycle[];
  /** Writes the changes that are not in the database yet. */
  stop(): Promise<void>;
}

/** Milliseconds between two removals of inactive users from the count. */
const hour = 3_600_000;

/**
 * Opens the count and the limit of monthly active users. Must be called before `openAccounts`, which receives the
 * checks, and before jobs are started.
 * @returns `undefined` when the options enable neither the count nor the limit
 */
export async function openActiveUsers(
  deps: ActiveUsersDeps,
  options: ActiveUsersOptions,
): Promise<ActiveUsers | undefined> {
  if (!options.limit_usage_by_mau && !options.mau_stats_only) return undefined;
  const { database, jobs, metrics } = deps;
  const monthly = new MonthlyUsers(deps);
  await monthly.load();
  const accounts = new AccountReader(database);
  const limit = new UsageLimit({ ...deps, monthly, account: (userId) => accounts.getUser(userId) }, options);
  await limit.removeOld();
  jobs.every('active-users/remove-old', hour, {
    async run() {
      await limit.removeOld();
      await monthly.flush();
    },
  });
  if (metrics) reportActiveUsers(metrics, { monthly, limit, max: options.max_mau_value });
  return {
    limit,
    checks: checksOf(limit),
    lifecycleHooks: [stopCountingDeactivated(limit)],
    stop: () => monthly.flush(),
  };
}

const checksOf = (limit: UsageLimit): AccountChecks => ({
  login: async ({ userId }) => limit.checkUser(userId),
  newAccount: () => limit.checkRegistration([]),
  registration: async ({ addresses }) => {
    limit.checkRegistration(addresses);
    return undefined;
  },
});

/** Stops counting users whose accounts are deactivated; the row is deleted with the other rows of the account. */
const stopCountingDeactivated = (limit: UsageLimit): AccountLifecycle => ({
  deactivated: async (writer: AnyWriter, _publish, { userId }) =>
    afterCommit(writer, () => limit.forget(userId)),
});
