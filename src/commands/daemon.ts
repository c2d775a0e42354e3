import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { CommandFailure } from './failure.ts';

/** Tells the process in the background what it is. */
const daemonVariable = 'HEARTH_DAEMON';

export const isDaemon = process.env[daemonVariable] === '1';

/** Where the process in the background logs to, in the working directory. */
const logFile = 'homeserver.log';

/**
 * Runs the same command again, detached from the terminal, and ends this process when that one serves.
 * @throws CommandFailure when it ends before that
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
  if (!ready) throw new CommandFailure(`the server did not start; ${logFile} says why`);
  child.disconnect();
  child.unref();
}

/** Tells the process that waits at the terminal, if any, that this one serves. */
export function reportReady(): void {
  if (!isDaemon || process.send === undefined) return;
  process.send('ready');
}
