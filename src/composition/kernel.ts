import { LimitOverrides, requireSameServerName } from '../accounts/index.ts';
import type { HearthConfiguration } from '../configuration.ts';
import { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import {
  type Database,
  type DatabaseOptions,
  databaseOptions,
  dataStoreEntries,
  migrate,
  openDatabase,
  openDatabaseExclusively,
} from '../kernel/database/index.ts';
import { Jobs } from '../kernel/jobs/index.ts';
import { createMetrics, type Logger, type Metrics, observeEventLoop } from '../kernel/observability/index.ts';
import type { Resolver } from '../kernel/outbound/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import { type RateLimit, RateLimiter } from '../kernel/rate-limits/index.ts';
import { LocalStreams, type StreamWriter } from '../kernel/streams/index.ts';
import { isServerName, type ServerName } from '../protocol/index.ts';
import { migrations } from '../slices.ts';
import type { Shutdown } from './shutdown.ts';

/** Configuration, clock, loggers and other inputs from outside the program. */
export interface Environment {
  readonly configuration: HearthConfiguration;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
  /** Returns the logger of a part by its name; by default a child of `log`. */
  readonly namedLog?: (name: string) => Logger;
  /** Replaces the DNS resolver of the machine. */
  readonly resolver?: Resolver;
  /** PEM certificates of trusted authorities; replace those of the machine. */
  readonly authorities?: readonly string[];
  /** Replaces the database of the configuration. */
  readonly databaseOptions?: DatabaseOptions;
  /** Lets other servers open the database too: for simulated crashes, after which a server stays in memory. */
  readonly sharesDatabase?: boolean;
  /** Called when another server has taken the lease on the database: writes fail, and this server should stop. */
  readonly onDatabaseLost?: (error: Error) => void;
}

/** The part of a process: `main` does everything and alone writes; a `reader` follows it and answers requests that read. */
export type Role = 'main' | 'reader';

/** Dependencies that every slice may receive. */
export interface Kernel extends Environment {
  readonly role: Role;
  namedLog(name: string): Logger;
  readonly serverName: ServerName;
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly jobs: Jobs;
  readonly caches: CacheRegistry;
  /** Absent unless the configuration enables metrics. */
  readonly metrics: Metrics | undefined;
  /** Users with other rate limits. */
  readonly limitOverrides: LimitOverrides;
  limiter(limit: RateLimit): RateLimiter;
  /** Limits actions of users: keys are user ids, or begin with one and a space. */
  userLimiter(limit: RateLimit): RateLimiter;
}

/** The kernel of the process that writes. */
export interface MainKernel extends Kernel {
  readonly streams: LocalStreams;
}

/**
 * Opens the database for this server alone, brings its schema up to date, and starts the services that all slices use.
 * @throws StartFailure when another server uses the database
 */
export async function openKernel(environment: Environment, shutdown: Shutdown): Promise<MainKernel> {
  const { configuration, clock, log } = environment;
  const namedLog = environment.namedLog ?? ((name: string) => log.child({ logger: name }));
  const metrics = configuration.observability.enable_metrics ? await createMetrics() : undefined;
  if (metrics) shutdown.add('event loop metric', observeEventLoop(metrics));

  const databaseDeps = { log: namedLog('database'), clock, ...(metrics && { metrics }) };
  const database = environment.sharesDatabase
    ? await openDatabase(optionsOf(environment), databaseDeps)
    : await openDatabaseExclusively(optionsOf(environment), databaseDeps, (error) =>
        environment.onDatabaseLost?.(error),
      );
  shutdown.add('database', () => database.close());
  await migrate(database, migrations, () => clock.now());
  const serverName = serverNameOf(configuration);
  await requireSameServerName(database, serverName);

  const caches = new CacheRegistry(clock, configuration.caches, metrics);
  shutdown.add('caches', () => caches.close());
  const streams = await LocalStreams.open({ database, clock, log: namedLog('streams'), metrics });
  const limitOverrides = await LimitOverrides.open(database, clock);
  const isExempt = (key: string) => limitOverrides.isExempt(key.split(' ', 1)[0] ?? key);
  const jobs = new Jobs({ database, clock, log: namedLog('jobs'), alone: true });
  return {
    ...environment,
    role: 'main',
    namedLog,
    serverName,
    database,
    streams,
    jobs,
    caches,
    metrics,
    limitOverrides,
    limiter: (limit) => new RateLimiter(limit, clock),
    userLimiter: (limit) => new RateLimiter(limit, clock, undefined, isExempt),
  };
}

export function optionsOf({ databaseOptions: given, configuration }: Environment): DatabaseOptions {
  return given ?? databaseOptions(dataStoreEntries(configuration.database).main);
}

export function serverNameOf({ server }: HearthConfiguration): ServerName {
  const { server_name: name } = server;
  if (!isServerName(name)) throw new Error(`server_name: '${name}' is not a server name`);
  return name;
}
