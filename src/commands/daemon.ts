import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { CommandFailure } from './failure.ts';

/** The environment variable that marks the process in the background. */
const daemonVariable = 'HEARTH_DAEMON';

export const isDaemon = process.env[daemonVariable] === '1';

/** The file in the working directory that receives standard output and standard error of the process in the background. */
const logFile = 'homeserver.log';

/**
 * Runs the same command again, detached from the terminal, and waits until the new process serves requests.
 * @param usesConsole whether the log configuration writes to standard output or standard error. Both then go to
 * `homeserver.log`. Otherwise that file is not created, and errors of the start are printed at the terminal.
 * @throws CommandFailure if the new process exits before it serves requests
 */
export async function daemonize({ usesConsole }: { readonly usesConsole: boolean }): Promise<void> {
  const log = usesConsole ? openSync(logFile, 'a', 0o600) : undefined;
  const child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    detached: true,
    env: { ...process.env, [daemonVariable]: '1' },
    stdio: ['ignore', log ?? 'ignore', log ?? 'pipe', 'ipc'],
  });
  child.stderr?.on('data', (chunk) => process.stderr.write(chunk));
  const ready = await new Promise<boolean>((resolve) => {
    child.once('message', () => resolve(true));
    child.once('close', () => resolve(false));
    child.once('error', () => resolve(false));
  });
  if (!ready)
    throw new CommandFailure(`the server did not start${usesConsole ? `; see ${logFile}` : ': see above'}`);
  child.stderr?.destroy();
  child.disconnect();
  child.unref();
}

/** Tells the process that waits at the terminal, if there is one, that this process serves requests. */
export function reportReady(): void {
  if (!isDaemon || process.send === undefined) return;
  process.send('ready');
}
