import type { Worker } from 'node:worker_threads';
import { BriefMap } from '../../brief-map.ts';
import { SpareThreads } from '../../threads/spare-threads.ts';
import { DatabaseClosed } from '../errors.ts';
import type {
  Executor,
  FromWorker,
  Operation,
  Response,
  Result,
  ToWorker,
  WorkerOptions,
} from './protocol.ts';

interface Waiting {
  resolve(results: readonly Result[]): void;
  reject(error: Error): void;
}

const threads = new SpareThreads('./worker', import.meta.url);

/** The calling thread's side of a worker that owns one connection. */
export class WorkerClient implements Executor {
  readonly #worker: Worker;
  readonly #waiting = new BriefMap<number, Waiting>();
  /** Resolves when the connection is closed or the thread has ended. */
  readonly #closed: Promise<void>;
  #lastId = 0;
  /** The error of all further requests, after the worker was closed or has ended. */
  #lost: Error | undefined;

  /** @param onLoss called when the worker ends unexpectedly; afterwards every `send` rejects */
  constructor(options: WorkerOptions, onLoss: (error: Error) => void) {
    this.#worker = threads.take();
    this.#worker.on('error', (error) =>
      this.#lose(error instanceof Error ? error : new Error(String(error)), onLoss),
    );
    this.#closed = new Promise((resolve) => {
      this.#worker.on('message', (message: FromWorker) => {
        if (message !== 'closed') return this.#receive(message);
        threads.release(this.#worker);
        return resolve();
      });
      this.#worker.on('exit', () => {
        this.#lose(new DatabaseClosed('the database thread has ended'), onLoss);
        resolve();
      });
    });
    this.#post({ open: options });
  }

  /** Number of unanswered requests. */
  get load(): number {
    return this.#waiting.size;
  }

  /** Sends operations. Rejects when the worker is lost. */
  send(operations: readonly Operation[]): Promise<readonly Result[]> {
    if (this.#lost) return Promise.reject(this.#lost);
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#post({ id, operations });
      if (this.#waiting.size === 0) this.#worker.ref();
      this.#waiting.set(id, { resolve, reject });
    });
  }

  /** Closes the connection after all earlier requests. */
  async close(): Promise<void> {
    if (!this.#lost) {
      this.#lost = new DatabaseClosed('the database is closed');
      this.#worker.ref();
      this.#post('close');
    }
    await this.#closed;
  }

  #post(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #receive({ id, results }: Response): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0 && !this.#lost) this.#worker.unref();
    waiting?.resolve(results);
  }

  #lose(error: Error, onLoss: (error: Error) => void): void {
    if (!this.#lost) {
      this.#lost = error;
      onLoss(error);
    }
    for (const { reject } of this.#waiting.values()) reject(this.#lost);
    this.#waiting.clear();
  }
}
