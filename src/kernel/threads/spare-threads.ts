import { Worker } from 'node:worker_threads';
import { type Clock, systemClock, type Timer } from '../clock.ts';

/** Maximum number of spare threads of one kind. */
const maxSpare = 4;

/** Milliseconds after which a spare thread ends; each one takes about 10 MB. */
const idleTimeout = 10_000;

interface Spare {
  readonly thread: Worker;
  readonly ending: Timer;
}

/** Bounds the memory that each thread reserves for short-lived objects. By default V8 reserves as much as for the main thread. */
const resourceLimits = { maxYoungGenerationSizeMb: 6 };

/**
 * Threads that run one file and are reused: starting a thread takes longer than most tasks. The file must serve
 * several tasks, one after the other. A thread does not keep the process alive, unless the caller of `take` calls `ref`
 * on it. Released threads end after `idleTimeout`.
 */
export class SpareThreads {
  readonly #entry: URL;
  readonly #clock: Clock;
  readonly #spare: Spare[] = [];

  /**
   * @param entry path of the file without `.ts` or `.js`; it has the extension of `importedFrom`
   * @param importedFrom `import.meta.url` of the caller, to which `entry` is relative
   */
  constructor(entry: string, importedFrom: string, clock = systemClock) {
    this.#clock = clock;
    const extension = importedFrom.endsWith('.ts') ? '.ts' : '.js';
    this.#entry = new URL(entry + extension, importedFrom);
  }

  /** Returns a thread that no other caller has, without listeners. */
  take(): Worker {
    const spare = this.#spare.pop();
    spare?.ending.cancel();
    if (spare) removeListeners(spare.thread);
    const thread = spare?.thread ?? new Worker(this.#entry, { resourceLimits });
    thread.unref();
    return thread;
  }

  /** Makes a thread available for reuse. Its task must be done. */
  release(thread: Worker): void {
    removeListeners(thread);
    thread.unref();
    if (this.#spare.length >= maxSpare) {
      void thread.terminate();
      return;
    }
    thread.on('error', () => this.#forget(thread));
    thread.on('exit', () => this.#forget(thread));
    const ending = this.#clock.setTimer(idleTimeout, () => {
      this.#forget(thread);
      void thread.terminate();
    });
    this.#spare.push({ thread, ending });
  }

  #forget(thread: Worker): void {
    const place = this.#spare.findIndex((spare) => spare.thread === thread);
    const [spare] = place < 0 ? [] : this.#spare.splice(place, 1);
    spare?.ending.cancel();
  }
}

/**
 * Lists the events because `removeAllListeners` without a name would also remove the listeners of Node
 * itself.
 */
function removeListeners(thread: Worker): void {
  for (const event of ['message', 'messageerror', 'error', 'exit']) thread.removeAllListeners(event);
}
