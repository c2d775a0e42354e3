import { Worker } from 'node:worker_threads';

/** How many threads of one kind wait for their next task. */
const spareLimit = 4;

/**
 * Threads that run one file, kept for the next task when one is done: starting a thread takes longer than most of what
 * one is asked for. The file must expect several tasks, one after the other. A thread holds the process only while its
 * user has called `ref`.
 */
export class SpareThreads {
  readonly #entry: URL;
  readonly #spare: Worker[] = [];

  /** @param entry without `.ts` or `.js`, which is that of the sources that run */
  constructor(entry: string, importedFrom: string) {
    const extension = importedFrom.endsWith('.ts') ? '.ts' : '.js';
    this.#entry = new URL(entry + extension, importedFrom);
  }

  /** One that nobody else uses, without listeners. */
  take(): Worker {
    const spare = this.#spare.pop();
    if (spare) silence(spare);
    const thread = spare ?? new Worker(this.#entry);
    thread.unref();
    return thread;
  }

  /** When its task is done, and it is ready for another. */
  giveBack(thread: Worker): void {
    silence(thread);
    thread.unref();
    if (this.#spare.length >= spareLimit) {
      void thread.terminate();
      return;
    }
    thread.on('error', () => this.#forget(thread));
    thread.on('exit', () => this.#forget(thread));
    this.#spare.push(thread);
  }

  #forget(thread: Worker): void {
    const place = this.#spare.indexOf(thread);
    if (place >= 0) this.#spare.splice(place, 1);
  }
}

/** Without the names, Node would take away its own listeners, too. */
function silence(thread: Worker): void {
  for (const event of ['message', 'messageerror', 'error', 'exit']) thread.removeAllListeners(event);
}
