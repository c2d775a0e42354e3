import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs commands of synadm one after the other, without loading the program again for each of them. */
export class SynadmCommands {
  readonly #process: ChildProcess;
  readonly #lines: Interface;

  /** @param home the home directory of the commands */
  constructor(home: string) {
    const environment = { ...process.env, HOME: home, LC_ALL: 'C.UTF-8', LANG: 'C.UTF-8' };
    const script = join(import.meta.dirname, 'synadm-commands.py');
    // Debian's synadm runs in this Python, whichever is first in PATH.
    this.#process = spawn('/usr/bin/python3', [script], {
      env: environment,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#lines = createInterface(this.#process.stdout!);
  }

  /** Runs a command. It fails when the command takes longer than a minute. @param command the arguments of synadm */
  async run(...command: readonly string[]): Promise<CommandResult> {
    const line = once(this.#lines, 'line', { signal: AbortSignal.timeout(60_000) });
    this.#process.stdin!.write(`${JSON.stringify(command)}\n`);
    const [result] = (await line) as [string];
    return JSON.parse(result) as CommandResult;
  }

  stop(): void {
    this.#process.kill();
  }
}
