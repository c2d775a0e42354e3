import type { Metrics } from '../kernel/observability/index.ts';
import type { MonthlyUsers } from './monthly-users.ts';
import type { UsageLimit } from './usage-limit.ts';

/** Exposes the number of monthly active users and its limit. */
export function reportActiveUsers(
  metrics: Metrics,
  {
    monthly,
    limit,
    max,
  }: { readonly monthly: MonthlyUsers; readonly limit: UsageLimit; readonly max: number },
): void {
  metrics.gauge({
    name: 'server_admin_mau_current',
    help: 'Monthly active users that count against the limit.',
    collect() {
      this.set(monthly.count);
    },
  });
  metrics.gauge({
    name: 'server_admin_mau_max',
    help: 'Value of the option max_mau_value.',
    collect() {
      this.set(max);
    },
  });
  metrics.gauge({
    name: 'server_admin_mau_current_mau_by_service',
    help: 'Monthly active users by the application service of their accounts; native for other accounts.',
    labelNames: ['app_service'],
    collect() {
      this.reset();
      for (const [service, count] of monthly.byService) this.set({ app_service: service }, count);
    },
  });
  metrics.gauge({
    name: 'server_admin_mau_registered_reserved_users',
    help: 'Users with an address of mau_limit_reserved_threepids.',
    async collect() {
      this.set((await limit.reservedUsers()).size);
    },
  });
}
