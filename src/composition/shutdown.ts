import type { Logger } from '../kernel/observability/index.ts';

/** Stops the started parts of the server in reverse order. */
export class Shutdown {
  readonly #log: Logger;
  readonly #steps: { name: string; stop: () => unknown }[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Registers how to stop a part of the server. Must be called as soon as the part runs. */
  add(name: string, stop: () => unknown): void {
    this.#steps.push({ name, stop });
  }

  /** Stops everything, last started first. A step that fails is logged and does not prevent the others. */
  async run(): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step.stop();
      } catch (error) {
        this.#log.error({ err: error, part: step.name }, 'Failed to stop cleanly');
      }
    }
  }
}
