import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { BridgeSettings } from './irc-bridge-settings.ts';

const program = fileURLToPath(new URL('./irc-bridge.ts', import.meta.url));

/** A bridge in its own process, which can be killed and started again. */
export class BridgeProcess {
  readonly #settings: BridgeSettings;
  #child: ChildProcess | undefined;

  constructor(settings: BridgeSettings) {
    this.#settings = settings;
  }

  /** Starts the bridge, and waits until it is ready. */
  async start(): Promise<void> {
    const child = spawn(process.execPath, ['--no-deprecation', program, JSON.stringify(this.#settings)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#child = child;
    await Promise.race([
      once(child.stdout, 'data'),
      once(child, 'exit').then(() => Promise.reject(new Error('The bridge ended before it was ready'))),
    ]);
  }

  /** Stops the execution of the process, which keeps its connections. */
  freeze(): void {
    this.#child?.kill('SIGSTOP');
  }

  /** Waits until the process has ended, for example because it has killed itself. */
  async ended(): Promise<void> {
    const child = this.#child;
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }

  /** `kill -9`. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL');
    await this.ended();
  }
}
