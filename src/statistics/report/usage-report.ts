import { countNewUsers, countUsers } from '../../accounts/index.ts';
import { countActiveUsers } from '../../devices/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { countRooms } from '../../room-engine/index.ts';
import { day } from '../utc-days.ts';
import { monthlyActiveUsers, recentMessages, returningUsers } from './usage-figures.ts';

/** Properties of the server that a report contains. */
export interface ReportingServer {
  readonly serverName: string;
  /** The option `server_context`. */
  readonly context: string | null;
  /** `sqlite3` or `psycopg2`, as in the option `database.name`. */
  readonly databaseEngine: string;
  readonly cacheFactor: number;
  readonly eventCacheSize: number;
  /** The level of the log. */
  readonly logLevel: string;
}

export interface UsageReportDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly server: ReportingServer;
}

/** Makes usage reports, whose fields have the names of the reference server. */
export class UsageReport {
  readonly #deps: UsageReportDeps;
  readonly #startedAt: number;
  /** When the last report was made, and the processor time used until then, in milliseconds. */
  #last: { at: number; used: number };

  constructor(deps: UsageReportDeps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
    this.#last = { at: this.#startedAt, used: processorTime() };
  }

  /** Returns the next report. Reads whole tables of users and rooms. */
  async make(): Promise<JsonObject> {
    const { database, clock, server } = this.#deps;
    const now = clock.now();
    const { user, guest, appservice, deactivated } = await countUsers(database);
    const created = await countNewUsers(database, now - day);
    const returning = await returningUsers(database, now);
    return {
      homeserver: server.serverName,
      server_context: server.context,
      timestamp: Math.floor(now / 1_000),
      uptime_seconds: Math.floor((now - this.#startedAt) / 1_000),
      total_users: user + guest + appservice + deactivated,
      total_nonbridged_users: user + guest,
      daily_user_type_native: created.user,
      daily_user_type_guest: created.guest,
      daily_user_type_bridged: created.appservice,
      total_room_count: await countRooms(database),
      daily_active_users: await countActiveUsers(database, now - day),
      monthly_active_users: await monthlyActiveUsers(database, now),
      ...(await recentMessages(database, now)),
      r30v2_users_all: returning.get('all') ?? 0,
      r30v2_users_android: returning.get('android') ?? 0,
      r30v2_users_ios: returning.get('ios') ?? 0,
      r30v2_users_electron: returning.get('electron') ?? 0,
      r30v2_users_web: returning.get('web') ?? 0,
      memory_rss: process.memoryUsage.rss(),
      cpu_average: this.#processorUse(now),
      cache_factor: server.cacheFactor,
      event_cache_size: server.eventCacheSize,
      database_engine: server.databaseEngine,
      database_server_version: await database.version(),
      log_level: server.logLevel.toUpperCase(),
    };
  }

  /** Returns the used part of one processor since the last report, in percent. */
  #processorUse(now: number): number {
    const { at, used } = this.#last;
    this.#last = { at: now, used: processorTime() };
    return now > at ? Math.floor(((this.#last.used - used) / (now - at)) * 100) : 0;
  }
}

/** Returns the milliseconds of processor time that this process has used. */
function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
