import { AsyncLocalStorage } from 'node:async_hooks';
import { ModuleFiles } from './module-files.ts';

/** Stands for a callback in the log and in metrics where code of a module runs outside of a known callback. */
export const outsideOfCallbacks = 'own code';

/** The module whose code runs, and its callback that was called. */
export interface RunningModule {
  /** As the configuration names it. */
  readonly module: string;
  /** The name of the callback, or `outsideOfCallbacks`. */
  readonly callback: string;
}

/**
 * Tracks which module's code runs, also in timers, listeners and promises that the module leaves behind, so that their
 * uncaught errors are attributed to the module.
 */
export class ModuleContext {
  readonly files = new ModuleFiles();
  readonly #running = new AsyncLocalStorage<RunningModule | undefined>();

  /** Runs code of a module. */
  run<T>(running: RunningModule, work: () => T): T {
    return this.#running.run(running, work);
  }

  /**
   * Runs code of the server that a module has called. It begins after the synchronous code of the caller, so that the time
   * limit of that code cannot interrupt it.
   */
  async leave<T>(work: () => T | Promise<T>): Promise<T> {
    await undefined;
    return this.#running.run(undefined, work);
  }

  /**
   * Returns the module to which an uncaught error belongs: the module whose code runs, or else the module whose files
   * are in the stack of the error. Errors of the server itself belong to no module.
   */
  ownerOf(error: unknown): RunningModule | undefined {
    const running = this.#running.getStore();
    if (running !== undefined) return running;
    const module = this.files.ownerInStack(error);
    return module === undefined ? undefined : { module, callback: outsideOfCallbacks };
  }
}
