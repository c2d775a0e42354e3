import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { CommandFailure } from './failure.ts';

/** The environment variable that marks the process in the background. */
const daemonVariable = 'HEARTH_DAEMON';

export const isDaemon = process.env[daemonVariable] === '1';

/** The log file of the process in the background, in the working directory. */
const logFile = 'homeserver.log';

/**
 * Runs the same command again, detached from the terminal, and waits until that process serves.
 * @throws CommandFailure if that process exits before it serves
 */
export async function daemonize(): Promise<void> {
  const log = openSync(logFile, 'a', 0o600);
  const child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    detached: true,
    env: { ...process.env, [daemonVariable]: '1' },
    stdio: ['ignore', log, log, 'ipc'],
  });
  const ready = await new Promise<boolean>((resolve) => {
    child.once('message', () => resolve(true));
    child.once('exit', () => resolve(false));
    child.once('error', () => resolve(false));
  });
  if (!ready) throw new CommandFailure(`the server did not start; see ${logFile}`);
  child.disconnect();
  child.unref();
}

/** Notifies the process that waits at the terminal, if any, that this one serves. */
export function reportReady(): void {
  if (!isDaemon || process.send === undefined) return;
  process.send('ready');
}
