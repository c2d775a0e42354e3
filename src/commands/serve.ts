import { rmSync, writeFileSync } from 'node:fs';
import { type HearthConfiguration, sections } from '../configuration.ts';
import { createHomeserver, type Homeserver } from '../homeserver.ts';
import { systemClock } from '../kernel/clock.ts';
import { diffReload, formatProblem } from '../kernel/config/index.ts';
import type { Logger, Logs } from '../kernel/observability/index.ts';
import { ownSoftware } from '../kernel/outbound/index.ts';
import { IdleCollection, limitOpenFiles } from '../kernel/process/index.ts';
import { systemRandomness } from '../kernel/randomness.ts';
import { type ConfigFlags, configPaths, defaultDirectory, readConfiguration } from './configuration-files.ts';
import { daemonize, isDaemon, reportReady } from './daemon.ts';
import { initialize } from './init.ts';
import { logsToConsole, openLogs, reloadLogs } from './logging.ts';

export interface ServeOptions extends ConfigFlags {
  readonly daemonize?: boolean;
  readonly printPidfile?: boolean;
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
  const { values, warnings, notices } = read();
  const { pid_file, print_pidfile } = values.process;
  if (!isDaemon && (options.printPidfile || print_pidfile)) process.stdout.write(`${pid_file ?? ''}\n`);
  if (!isDaemon && (options.daemonize || values.process.daemonize)) {
    return daemonize({ usesConsole: logsToConsole(values) });
  }

  const logs = openLogs(values);
  const log = logs.root;
  for (const problem of warnings) log.warn(formatProblem(problem));
  if (notices.length > 0) log.warn({ remarks: notices.map(formatProblem) }, 'Remarks on the configuration');
  await limitOpenFiles(values.process.soft_file_limit).catch((error: unknown) =>
    log.warn({ err: error }, 'Could not set soft_file_limit'),
  );
  const databaseLost = Promise.withResolvers<void>();
  const homeserver = createHomeserver({
    configuration: values,
    clock: systemClock,
    randomness: systemRandomness,
    log,
    namedLog: (name) => logs.named(name),
    onDatabaseLost: () => databaseLost.resolve(),
  });
  const stop = createStop(homeserver, pid_file);
  watchSignals(
    stop,
    log,
    createReload(homeserver, logs, values, () => read().values),
  );
  void databaseLost.promise.then(() => stop(1));
  const { addresses, hasAccounts } = await homeserver.start();
  new IdleCollection({ clock: systemClock });
  if (isDaemon && pid_file !== null) writeFileSync(pid_file, `${process.pid}\n`);
  log.info({ version: ownSoftware().version, serverName: values.server.server_name, addresses }, 'Serving');
  printAddresses({ values, addresses, hasAccounts, paths });
  reportReady();
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

/** Returns a function that stops the server and ends the process; a second call ends it at once. */
function createStop(homeserver: Homeserver, pidFile: string | null): Stop {
  let stopping = false;
  return async (exitCode) => {
    if (stopping) process.exit(1);
    stopping = true;
    await homeserver.stop();
    if (isDaemon && pidFile !== null) rmSync(pidFile, { force: true });
    process.exit(exitCode);
  };
}

/**
 * SIGTERM and SIGINT stop the server, a second signal at once; SIGHUP reloads; an uncaught exception ends the
 * process.
 */
function watchSignals(stop: Stop, log: Logger, reload: () => Promise<void>): void {
  const stopBy = (signal: string) => {
    log.info({ signal }, 'Stopping');
    void stop(0);
  };
  process.on('SIGTERM', stopBy);
  process.on('SIGINT', stopBy);
  process.on('SIGHUP', () => void reload());
  // The memory may be wrong after this; all acknowledged writes are on disk.
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'Uncaught exception, the process exits');
    process.exit(1);
  });
}

/**
 * Returns a function that applies the options that may change at run time, and logs those that need a
 * restart.
 */
function createReload(
  homeserver: Homeserver,
  logs: Logs,
  start: HearthConfiguration,
  read: () => HearthConfiguration,
): () => Promise<void> {
  let running = start;
  return async () => {
    try {
      const { values, applied, needRestart } = diffReload(running, read(), sections);
      reloadLogs(logs, values);
      await homeserver.reload(values);
      running = values;
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

/** Prints where the server is, and what its operator may want to do next. */
function printAddresses({ values, addresses, hasAccounts, paths }: Started): void {
  const { server_name: name } = values.server;
  const files = paths.map((path) => ` -c ${path}`).join('');
  const registerUser = `npm run hearth -- register-user${files}`;
  const places = addresses.map((address) => `  ${address}`).join('\n');
  const first = `
To register the first user as an administrator, run in another terminal:
  ${registerUser} --admin
`;
  const others = `
Registration by clients is ${values.accounts.enable_registration ? 'open' : 'closed (enable_registration)'}. To register another user:
  ${registerUser}
`;
  const nameIsPermanent = `
The server name, ${name}, is part of all user ids and cannot be changed later. To begin with another one:
  npm run hearth -- init -n example.org -d DIRECTORY
`;
  process.stdout.write(
    `\nHearth serves ${name} at\n${places}\n` +
      (hasAccounts ? '' : first) +
      others +
      (hasAccounts ? '' : nameIsPermanent) +
      '\n',
  );
}
