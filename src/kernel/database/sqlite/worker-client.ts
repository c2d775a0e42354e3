import { Worker } from 'node:worker_threads';
import { DatabaseClosed } from '../errors.ts';
import type { Executor, Operation, Request, Response, Result, WorkerOptions } from './protocol.ts';

interface Waiting {
  resolve(results: readonly Result[]): void;
  reject(error: Error): void;
}

/** The calling thread's end of a worker that owns one connection. */
export class WorkerClient implements Executor {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #exited: Promise<void>;
  #lastId = 0;
  #lost: Error | undefined;

  /** `onLoss` is told when the worker ends without having been asked to: nothing can be done with it any more. */
  constructor(options: WorkerOptions, onLoss: (error: Error) => void) {
    const entry = import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js';
    this.#worker = new Worker(new URL(entry, import.meta.url), { workerData: options });
    this.#worker.on('message', (response: Response) => this.#receive(response));
    this.#worker.on('error', (error) =>
      this.#lose(error instanceof Error ? error : new Error(String(error)), onLoss),
    );
    this.#exited = new Promise((resolve) => {
      this.#worker.on('exit', () => {
        this.#lose(new DatabaseClosed('the thread of the database has ended'), onLoss);
        resolve();
      });
    });
    this.#worker.unref();
  }

  /** How many requests have not been answered. */
  get load(): number {
    return this.#waiting.size;
  }

  /** Rejects when the worker is lost. */
  send(operations: readonly Operation[]): Promise<readonly Result[]> {
    if (this.#lost) return Promise.reject(this.#lost);
    this.#lastId += 1;
    const request: Request = { id: this.#lastId, operations };
    return new Promise((resolve, reject) => {
      this.#worker.postMessage(request);
      if (this.#waiting.size === 0) this.#worker.ref();
      this.#waiting.set(request.id, { resolve, reject });
    });
  }

  /** After everything that was sent before. */
  async close(): Promise<void> {
    if (!this.#lost) {
      this.#lost = new DatabaseClosed('the database is closed');
      this.#worker.ref();
      this.#worker.postMessage('close');
    }
    await this.#exited;
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
