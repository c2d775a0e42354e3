import type { Logger } from '../kernel/observability/index.ts';

/** What was started and must be stopped, in reverse. */
export class Shutdown {
  readonly #log: Logger;
  readonly #steps: { name: string; stop: () => unknown }[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Remembers how to stop something; call it as soon as it runs. */
  add(name: string, stop: () => unknown): void {
    this.#steps.push({ name, stop });
  }

  /** Stops everything, last started first. A step that fails is logged and does not keep the others from running. */
  async run(): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step.stop();
      } catch (error) {
        this.#log.error({ err: error, part: step.name }, 'Could not be stopped cleanly');
      }
    }
  }
}
