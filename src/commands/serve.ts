import { rmSync, writeFileSync } from 'node:fs';
import { type HearthConfiguration, sections } from '../configuration.ts';
import { createHomeserver, type Homeserver } from '../homeserver.ts';
import { systemClock } from '../kernel/clock.ts';
import { diffReload, formatProblem, type OptionPlaces, reloadedOrigins } from '../kernel/config/index.ts';
import { LoggedErrors, type Logger, type Logs, UncaughtErrors } from '../kernel/observability/index.ts';
import { ownSoftware } from '../kernel/outbound/index.ts';
import {
  HeapGrowth,
  IdleCollection,
  limitOpenFiles,
  ownCommand,
  ServiceManager,
  StallWatch,
} from '../kernel/process/index.ts';
import { systemRandomness } from '../kernel/randomness.ts';
import { startStep } from '../kernel/start-failure.ts';
import { type ConfigFlags, configPaths, defaultDirectory, readConfiguration } from './configuration-files.ts';
import { daemonize, isDaemon, reportReady } from './daemon.ts';
import { initialize } from './init.ts';
import { logsToConsole, openLogs, reloadLogs } from './logging.ts';

export interface ServeOptions extends ConfigFlags {
  readonly daemonize?: boolean;
  readonly printPidfile?: boolean;
  /** The port of the debugging console; replaces the option `manhole`. */
  readonly manhole?: number;
}

/** `hearth serve`: runs the homeserver until a signal stops it. */
export async function serve(options: ServeOptions): Promise<void> {
  const paths = configPathsOrInitialize(options);
  const loadOptions = { environment: process.env, createMissing: { randomness: systemRandomness } };
  const read = () => {
    const configuration = readConfiguration(paths, loadOptions);
    return { ...configuration, values: withFlags(configuration.values, options) };
  };
  const { values, origins, warnings, notices } = read();
  const { pid_file, print_pidfile } = values.process;
  if (!isDaemon && (options.printPidfile || print_pidfile)) process.stdout.write(`${pid_file ?? ''}\n`);
  if (!isDaemon && (options.daemonize || values.process.daemonize)) {
    return daemonize({ usesConsole: logsToConsole(values) });
  }

  const loggedErrors = values.observability.sentry.dsn === null ? undefined : new LoggedErrors();
  const logs = openLogs(values, loggedErrors);
  const log = logs.root;
  for (const problem of warnings) log.warn(formatProblem(problem));
  if (notices.length > 0)
    log.warn({ remarks: notices.map(formatProblem) }, 'Notices about the configuration');
  await limitOpenFiles(values.process.soft_file_limit).catch((error: unknown) =>
    log.warn({ err: error }, 'Could not set soft_file_limit'),
  );
  const databaseLost = Promise.withResolvers<void>();
  const uncaughtErrors = new UncaughtErrors();
  const homeserver = createHomeserver(
    {
      configuration: values,
      clock: systemClock,
      randomness: systemRandomness,
      log,
      namedLog: (name) => logs.named(name),
      ...(loggedErrors && { loggedErrors }),
      uncaughtErrors,
      stallWatch: new StallWatch(),
      onDatabaseLost: () => databaseLost.resolve(),
    },
    origins,
  );
  const serviceManager = new ServiceManager(systemClock, process.env);
  const stop = createStop(homeserver, pid_file, serviceManager);
  watchSignals(stop, log, createReload(homeserver, logs, { values, origins }, read));
  watchErrors(log, uncaughtErrors);
  void databaseLost.promise.then(() => stop(1));
  const { addresses, hasAccounts } = await homeserver.start();
  new IdleCollection({ clock: systemClock });
  new HeapGrowth({ clock: systemClock });
  if (isDaemon && pid_file !== null) {
    await startStep('pid_file', async () => writeFileSync(pid_file, `${process.pid}\n`));
  }
  log.info({ version: ownSoftware().version, serverName: values.server.server_name, addresses }, 'Serving');
  printAddresses({ values, addresses, hasAccounts, paths });
  reportReady();
  await serviceManager.ready(`Serves ${values.server.server_name}`);
}

function configPathsOrInitialize(options: ServeOptions): readonly string[] {
  const paths = configPaths(options);
  if (paths.length > 0) return paths;
  return [initialize({ serverName: 'localhost', directory: defaultDirectory }, systemRandomness)];
}

function withFlags(values: HearthConfiguration, { manhole }: ServeOptions): HearthConfiguration {
  return manhole === undefined ? values : { ...values, process: { ...values.process, manhole } };
}

type Stop = (exitCode: number) => Promise<void>;

/** Returns a function that stops the server and ends the process; a second call ends the process at once. */
function createStop(homeserver: Homeserver, pidFile: string | null, serviceManager: ServiceManager): Stop {
  let stopping = false;
  return async (exitCode) => {
    if (stopping) process.exit(1);
    stopping = true;
    await Promise.all([serviceManager.stopping(), homeserver.stop()]);
    if (isDaemon && pidFile !== null) rmSync(pidFile, { force: true });
    process.exit(exitCode);
  };
}

/**
 * Stops the server at SIGTERM or SIGINT; a second of these signals ends the process at once. SIGHUP reads the
 * configuration again.
 */
function watchSignals(stop: Stop, log: Logger, reload: () => Promise<void>): void {
  const stopBy = (signal: string) => {
    log.info({ signal }, 'Stopping');
    void stop(0);
  };
  process.on('SIGTERM', stopBy);
  process.on('SIGINT', stopBy);
  process.on('SIGHUP', () => void reload());
}

/** Ends the process after an uncaught exception or rejection, except for exceptions and rejections of modules. */
function watchErrors(log: Logger, uncaughtErrors: UncaughtErrors): void {
  // The state in memory may be wrong after an uncaught exception. Exiting loses nothing that was acknowledged.
  process.on('uncaughtException', (error) => {
    if (uncaughtErrors.isClaimed(error)) return;
    log.fatal({ err: error, exits: true }, 'Uncaught exception, the process exits');
    process.exit(1);
  });
}

interface ReadConfiguration {
  readonly values: HearthConfiguration;
  /** File and line of each option that the configuration files set, by the option's path. */
  readonly origins: OptionPlaces;
}

/**
 * Returns a function that reads the configuration again. It applies the changed options that can change at run time,
 * and logs the changed options that need a restart.
 */
function createReload(
  homeserver: Homeserver,
  logs: Logs,
  start: ReadConfiguration,
  read: () => ReadConfiguration,
): () => Promise<void> {
  let running = start;
  return async () => {
    try {
      const loaded = read();
      const { values, applied, needRestart } = diffReload(running.values, loaded.values, sections);
      const origins = reloadedOrigins(running.origins, loaded.origins, needRestart);
      reloadLogs(logs, values);
      await homeserver.reload(values, origins);
      running = { values, origins };
      logs.root.info({ applied, needRestart }, 'Configuration and certificates reloaded');
    } catch (error) {
      logs.root.error({ err: error }, 'Reload failed, the server continues with its previous configuration');
    }
  };
}

interface Started {
  readonly values: HearthConfiguration;
  readonly addresses: readonly string[];
  readonly hasAccounts: boolean;
  readonly paths: readonly string[];
}

/** Prints the addresses of the server, and the commands that its operator may need next. */
function printAddresses({ values, addresses, hasAccounts, paths }: Started): void {
  const { server_name: name } = values.server;
  const files = paths.map((path) => ` -c ${path}`).join('');
  const registerUser = `${ownCommand} register-user${files}`;
  const places = addresses.map((address) => `  ${address}`).join('\n');
  const first = `
To register the first user as an administrator, run in another terminal:
  ${registerUser} --admin
`;
  const { enable_registration: isOpen, registration_requires_token: needsToken } = values.accounts;
  const others = `
Registration by clients is ${isOpen ? 'open' : 'closed (enable_registration)'}. To register another user:
  ${registerUser}
`;
  const tokens = `
${isOpen ? '' : 'To let users register with a token, set enable_registration and registration_requires_token, and restart. '}To make a registration token:
  ${ownCommand} token create${files}
`;
  const nameIsPermanent = `
The server name, ${name}, is part of all user ids and cannot be changed later. To begin with another one:
  ${ownCommand} init -n example.org -d DIRECTORY
`;
  process.stdout.write(
    `\nHearth serves ${name} at\n${places}\n` +
      (hasAccounts ? '' : first) +
      others +
      (isOpen && !needsToken ? '' : tokens) +
      (hasAccounts ? '' : nameIsPermanent) +
      '\n',
  );
}
