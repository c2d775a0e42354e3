import type { Rooms } from '../rooms/index.ts';
import { type DailyFigures, openStatistics, type ReportTarget } from '../statistics/index.ts';
import { openHttpToConfiguredServers } from './http-to-configured-servers.ts';
import { databaseOptionsOf, type Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { Users } from './users.ts';

/** Opens the statistics of the server. Must be called before jobs are started. */
export async function startStatistics(
  kernel: Kernel,
  { accounts }: Users,
  { engine }: Rooms,
  opened: OpenedSlices,
): Promise<DailyFigures> {
  const { lastSeen } = accounts;
  const { accountStream } = accounts.accounts;
  const log = kernel.namedLog('statistics');
  const report = reportTarget(kernel, opened);
  const deps = { ...kernel, log, engine, lastSeen, accountStream, report };
  return opened.add('statistics', await openStatistics(deps)).dailyFigures;
}

/** Opens the connection for usage reports. @returns `undefined` unless the operator enables them (`report_stats`) */
function reportTarget(kernel: Kernel, opened: OpenedSlices): ReportTarget | undefined {
  const { observability, caches } = kernel.configuration;
  if (!observability.report_stats) return undefined;
  const http = openHttpToConfiguredServers(kernel, 'usage_report_connections', { maxPools: 1 });
  opened.add('requests with usage reports', { stop: () => http.close() });
  return {
    http,
    endpoint: observability.report_stats_endpoint,
    server: {
      serverName: kernel.serverName,
      context: observability.server_context,
      databaseEngine: databaseOptionsOf(kernel).kind === 'sqlite' ? 'sqlite3' : 'psycopg2',
      cacheFactor: caches.caches.global_factor,
      eventCacheSize: caches.event_cache_size,
      logLevel: kernel.log.level,
    },
  };
}
