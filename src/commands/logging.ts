import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { HearthConfiguration } from '../configuration.ts';
import {
  defaultLogConfig,
  type LogConfig,
  type LoggedErrors,
  Logs,
  logConfigOf,
} from '../kernel/observability/index.ts';
import { CommandFailure } from './failure.ts';

/**
 * Opens the logs as configured.
 * @param loggedErrors receives the errors that are logged
 * @throws CommandFailure if the file `log_config` cannot be read or is not valid, or a log file cannot be opened
 */
export function openLogs(values: HearthConfiguration, loggedErrors?: LoggedErrors): Logs {
  return asCommandFailure(values, () => {
    const config = readLogConfig(values);
    const logs = new Logs(config, { context: values.observability.server_context, loggedErrors });
    logRemarks(logs, config);
    return logs;
  });
}

/**
 * Whether log lines go to standard output or standard error.
 * @throws CommandFailure if the file `log_config` cannot be read or is not valid
 */
export function logsToConsole(values: HearthConfiguration): boolean {
  const { outputs } = asCommandFailure(values, () => readLogConfig(values));
  return outputs.some(({ to }) => typeof to === 'string');
}

/**
 * Reads the file `log_config` again, and changes the logs accordingly.
 * @throws CommandFailure if it cannot be read or is not valid, or a log file cannot be opened; the logs then stay as
 * they were
 */
export function reloadLogs(logs: Logs, values: HearthConfiguration): void {
  asCommandFailure(values, () => {
    const config = readLogConfig(values);
    logs.configure(config);
    logRemarks(logs, config);
  });
}

function readLogConfig({ observability: { log_config: file } }: HearthConfiguration): LogConfig {
  return file === null ? defaultLogConfig : logConfigOf(parse(readFileSync(file, 'utf8')));
}

function logRemarks({ root }: Logs, { remarks }: LogConfig): void {
  if (remarks.length > 0) root.warn({ remarks }, 'Warnings about the log configuration');
}

/**
 * Runs `action`.
 * @throws CommandFailure with the path of the log configuration and the first line of the error of `action`
 */
function asCommandFailure<T>({ observability }: HearthConfiguration, action: () => T): T {
  try {
    return action();
  } catch (error) {
    // After the first line, messages about invalid YAML have an excerpt of the file.
    const [reason] = (error instanceof Error ? error.message : String(error)).split('\n');
    throw new CommandFailure(`log_config: ${observability.log_config}: ${reason}`);
  }
}
