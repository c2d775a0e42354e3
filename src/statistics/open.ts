import { type AccountChange, countUsers } from '../accounts/index.ts';
import type { LastSeen } from '../devices/index.ts';
import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { OutboundHttp } from '../kernel/outbound/index.ts';
import type { Stream } from '../kernel/streams/index.ts';
import { storedMediaBytes } from '../media/index.ts';
import { countRooms } from '../room-engine/index.ts';
import { DayHistory } from './days/daily-figures.ts';
import { MessageCounter, type MessageCounterDeps } from './messages/message-counter.ts';
import { type ReportingServer, UsageReport } from './report/usage-report.ts';
import { UsageReporting } from './report/usage-reporting.ts';
import { hour } from './utc-days.ts';
import { UserVisits } from './visits/user-visits.ts';

/** Where usage statistics are reported. */
export interface ReportTarget {
  readonly http: Pick<OutboundHttp, 'fetch'>;
  /** The option `report_stats_endpoint`. */
  readonly endpoint: string;
  readonly server: ReportingServer;
}

export interface StatisticsDeps extends Omit<MessageCounterDeps, 'recordsRooms'> {
  readonly jobs: Jobs;
  readonly caches: CacheRegistry;
  readonly lastSeen: Pick<LastSeen, 'subscribe'>;
  readonly accountStream: Pick<Stream<AccountChange>, 'subscribe'>;
  /** Absent: nothing is reported. */
  readonly report?: ReportTarget | undefined;
}

/** Opens the statistics and starts counting. Must be called before jobs are started. */
export async function openStatistics(deps: StatisticsDeps) {
  const { database, clock, jobs, lastSeen, accountStream, report } = deps;
  const visits = new UserVisits(deps);
  lastSeen.subscribe((activity) => visits.record(activity));
  accountStream.subscribe(({ kind, userId }) => {
    if (kind === 'deactivated') visits.forget(userId);
  });
  const messages = new MessageCounter({ ...deps, recordsRooms: report !== undefined });
  const flush = () => Promise.all([messages.flush(), visits.flush()]);
  const dailyFigures = new DayHistory({ database, clock, flush, count: () => countServer(deps) });
  jobs.every('statistics/count-day', hour, { run: () => dailyFigures.count() });
  await messages.start();
  const reporting =
    report &&
    new UsageReporting({ ...deps, ...report, flush, report: new UsageReport({ ...deps, ...report }) });
  return {
    dailyFigures,
    async stop() {
      await reporting?.stop();
      await flush();
    },
  };
}

async function countServer({ database }: StatisticsDeps) {
  const { user, guest, appservice } = await countUsers(database);
  return {
    users: user + guest + appservice,
    rooms: await countRooms(database),
    mediaBytes: await storedMediaBytes(database),
    databaseBytes: await database.size(),
  };
}
