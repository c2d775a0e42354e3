import { open } from 'node:fs/promises';

/** Flushes a directory to the disk: a new name is durable only after that. */
export async function flushDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Flushes directories once for all callers that wait for the same flush. */
export class DirectoryFlushes {
  readonly #running = new Map<string, Promise<void>>();
  /**
   * The next flush of each directory, by path. A flush that waits begins when the running one ends: the running one may
   * have begun before the new callers created their files.
   */
  readonly #next = new Map<string, Promise<void>>();

  /** Resolves when all names that the directory has at the time of the call are on the disk. */
  flush(path: string): Promise<void> {
    const running = this.#running.get(path);
    if (running === undefined) return this.#start(path);
    const waiting = this.#next.get(path);
    if (waiting !== undefined) return waiting;
    const begin = () => {
      this.#next.delete(path);
      return this.#start(path);
    };
    const next = running.then(begin, begin);
    this.#next.set(path, next);
    return next;
  }

  #start(path: string): Promise<void> {
    const run = flushDirectory(path).finally(() => this.#running.delete(path));
    this.#running.set(path, run);
    return run;
  }
}
