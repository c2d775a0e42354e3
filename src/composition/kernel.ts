import { LimitOverrides, requireSameServerName } from '../accounts/index.ts';
import type { HearthConfiguration } from '../configuration.ts';
import { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import {
  type Database,
  type DatabaseEnvironment,
  type DatabaseOptions,
  databaseOptions,
  dataStoreEntries,
  migrate,
  openDatabase,
  openDatabaseExclusively,
  requireStores,
} from '../kernel/database/index.ts';
import { Jobs } from '../kernel/jobs/index.ts';
import {
  createMetrics,
  type LoggedErrors,
  type Logger,
  type Metrics,
  observeEventLoop,
  type UncaughtErrors,
} from '../kernel/observability/index.ts';
import type { Resolver } from '../kernel/outbound/index.ts';
import type { StallWatch } from '../kernel/process/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import { type RateLimit, RateLimiter } from '../kernel/rate-limits/index.ts';
import { LocalStreams, type StreamWriter } from '../kernel/streams/index.ts';
import type { Tracing } from '../kernel/tracing/index.ts';
import { isServerName, type ServerName } from '../protocol/index.ts';
import { migrations, stateMigrations } from '../slices.ts';
import type { Shutdown } from './shutdown.ts';
import { startTracing } from './tracing.ts';

/** Services that find errors of the process and stalls of its event loop. */
export interface ProcessErrors {
  /** The errors that are logged; absent unless they are reported to a service. */
  readonly loggedErrors?: LoggedErrors;
  /** The uncaught errors; absent where another program handles them. */
  readonly uncaughtErrors?: UncaughtErrors;
  /** Finds code that blocks the event loop; absent where another program watches the process. */
  readonly stallWatch?: StallWatch;
}

/** Configuration, clock, loggers and other inputs from outside the program. */
export interface Environment extends ProcessErrors {
  readonly configuration: HearthConfiguration;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
  /** Returns the logger of a part by its name; by default a child of `log`. */
  readonly namedLog?: (name: string) => Logger;
  /** Replaces the DNS resolver of the machine. */
  readonly resolver?: Resolver;
  /** PEM certificates of trusted authorities. They replace the trusted authorities of the machine. */
  readonly authorities?: readonly string[];
  /** Replaces the database of the configuration. */
  readonly databaseOptions?: DatabaseOptions;
  /**
   * Lets other servers open the database too. Tests need it to simulate a crash: the crashed server still has the
   * database open when the next one starts.
   */
  readonly sharesDatabase?: boolean;
  /** Called when another server has taken the lease on the database: writes fail, and this server should stop. */
  readonly onDatabaseLost?: (error: Error) => void;
}

/** The role of a process: only `main` writes; a `reader` follows `main` and answers requests that only read. */
export type Role = 'main' | 'reader';

/** The databases of a server. */
export interface Databases {
  readonly database: Database;
  /** The database of the state groups: a separate database if the option `databases` names one, else `database`. */
  readonly stateDatabase: Database;
}

/** Dependencies that every slice may receive. */
export interface Kernel extends Environment, Databases {
  readonly role: Role;
  namedLog(name: string): Logger;
  readonly serverName: ServerName;
  readonly streams: StreamWriter;
  readonly jobs: Jobs;
  readonly caches: CacheRegistry;
  /** Absent unless the configuration enables metrics. */
  readonly metrics: Metrics | undefined;
  /** The users whose rate limits differ from the configured ones. */
  readonly limitOverrides: LimitOverrides;
  /** Returns a limiter that exempts no keys. */
  limiter(limit: RateLimit): RateLimiter;
  /**
   * Returns a limiter of users' actions, which does not limit the users that `limitOverrides` exempts. A key is a user
   * id, or begins with a user id and a space.
   */
  userLimiter(limit: RateLimit): RateLimiter;
}

/** The kernel of the main process. */
export interface MainKernel extends Kernel {
  readonly streams: LocalStreams;
  /** Absent unless `opentracing` is enabled. */
  readonly tracing: Tracing | undefined;
}

/**
 * Opens the database for this server alone, brings its schema up to date, and starts the services that all slices use.
 * @throws StartFailure when another server uses the database, or when the database belongs to another server name
 */
export async function openKernel(environment: Environment, shutdown: Shutdown): Promise<MainKernel> {
  const { configuration, clock, log } = environment;
  const namedLog = environment.namedLog ?? ((name: string) => log.child({ logger: name }));
  const metrics = configuration.observability.enable_metrics ? await createMetrics() : undefined;
  if (metrics) shutdown.add('event loop metric', observeEventLoop(metrics));

  const databaseDeps = { log: namedLog('database'), clock, ...(metrics && { metrics }) };
  const opened = await openDatabases(environment, databaseDeps, shutdown);
  const serverName = serverNameOf(configuration);
  await requireSameServerName(opened.database, serverName);

  const caches = new CacheRegistry(clock, configuration.caches, metrics);
  shutdown.add('caches', () => caches.close());
  const tracing = await startTracing({ ...environment, namedLog, caches, serverName }, shutdown);
  const database = tracing?.database(opened.database) ?? opened.database;
  const stateDatabase =
    opened.stateDatabase === opened.database
      ? database
      : (tracing?.database(opened.stateDatabase) ?? opened.stateDatabase);
  const streams = await LocalStreams.open({ database, clock, log: namedLog('streams'), metrics });
  const limitOverrides = await LimitOverrides.open(database, clock);
  const jobs = new Jobs({ database, clock, log: namedLog('jobs'), isOnlyProcess: true, tracing });
  return {
    ...environment,
    role: 'main',
    namedLog,
    serverName,
    database,
    stateDatabase,
    streams,
    jobs,
    caches,
    metrics,
    tracing,
    limitOverrides,
    limiter: (limit) => new RateLimiter(limit, clock),
    userLimiter: (limit) => new RateLimiter(limit, clock, undefined, (key) => limitOverrides.isExempt(key)),
  };
}

/** Opens the databases for this server alone, and brings their schemas up to date. */
async function openDatabases(
  environment: Environment,
  deps: DatabaseEnvironment,
  shutdown: Shutdown,
): Promise<Databases> {
  const { clock, randomness } = environment;
  const now = () => clock.now();
  const open = async (options: DatabaseOptions, name: string, databaseEnvironment: DatabaseEnvironment) => {
    const opened = environment.sharesDatabase
      ? await openDatabase(options, databaseEnvironment)
      : await openDatabaseExclusively(options, databaseEnvironment, (error) =>
          environment.onDatabaseLost?.(error),
        );
    shutdown.add(name, () => opened.close());
    return opened;
  };
  const options = databaseOptionsOf(environment);
  const stateOptions = stateDatabaseOptionsOf(environment);
  const database = await open(options, 'database', deps);
  const main = { kind: options.kind, database };
  if (stateOptions === undefined) {
    await requireStores(main, undefined, randomness);
    await migrate(database, migrations, now);
    return { database, stateDatabase: database };
  }
  // Only the main database has metrics.
  const { metrics: _, ...withoutMetrics } = deps;
  const stateDatabase = await open(stateOptions, 'database of state groups', withoutMetrics);
  await requireStores(main, { kind: stateOptions.kind, database: stateDatabase }, randomness);
  await migrate(stateDatabase, stateMigrations, now);
  await migrate(database, migrations, now);
  return { database, stateDatabase };
}

/** Returns the options of the database of state groups; `undefined` when the main database has the state groups. */
export function stateDatabaseOptionsOf({
  databaseOptions: given,
  configuration,
}: Environment): DatabaseOptions | undefined {
  const { main, state } = dataStoreEntries(configuration.database);
  return given !== undefined || state === main ? undefined : databaseOptions(state);
}

/** Returns the options of the main database. */
export function databaseOptionsOf({ databaseOptions: given, configuration }: Environment): DatabaseOptions {
  return given ?? databaseOptions(dataStoreEntries(configuration.database).main);
}

/** Returns the server name of the configuration. @throws Error when it is not a valid server name */
export function serverNameOf({ server }: HearthConfiguration): ServerName {
  const { server_name: name } = server;
  if (!isServerName(name)) throw new Error(`server_name: '${name}' is not a server name`);
  return name;
}
