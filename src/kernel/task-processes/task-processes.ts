import type { Clock, Timer } from '../clock.ts';
import { TaskFailure } from './task-failure.ts';
import { TaskProcess } from './task-process.ts';

export interface TaskLimits {
  /** Maximum number of processes. */
  readonly processes: number;
  /** Maximum number of waiting tasks of each urgency. */
  readonly waiting: { readonly urgent: number; readonly background: number };
  /** Milliseconds that a task may take, without the start of a process. */
  readonly taskTimeout: number;
  /** Milliseconds after which an idle process ends. */
  readonly idleTimeout: number;
  /** Milliseconds that a task waits for the busy processes before a further one is started. */
  readonly growAfter: number;
}

export interface TaskProcessesDeps {
  /** Path of the program of the processes, without `.ts` or `.js`; it has the extension of `importedFrom`. */
  readonly program: string;
  /** `import.meta.url` of the caller, to which `program` is relative. */
  readonly importedFrom: string;
  /**
   * Environment variables of the processes. Of the variables of this process, they inherit only a few
   * (`task-process.ts`).
   */
  readonly environment: Readonly<Record<string, string>>;
  readonly limits: TaskLimits;
  readonly clock: Clock;
}

interface Waiting<T, R> {
  readonly task: T;
  /** Monotonic milliseconds at which the task was added. */
  readonly since: number;
  readonly resolve: (result: R) => void;
  readonly reject: (failure: unknown) => void;
}

/**
 * Performs tasks in separate processes. Processes are started on demand, perform one task at a time, are
 * killed when a task exceeds its timeout, and end when idle. With several processes, one is always kept free
 * of background tasks.
 */
export class TaskProcesses<T extends object, R> {
  readonly #deps: TaskProcessesDeps;
  readonly #program: URL;
  readonly #urgent: Waiting<T, R>[] = [];
  readonly #background: Waiting<T, R>[] = [];
  readonly #busy = new Set<TaskProcess<T, R>>();
  readonly #spare = new Map<TaskProcess<T, R>, Timer>();
  #backgroundBusy = 0;
  #growing: Timer | undefined;
  #isStopped = false;

  constructor(deps: TaskProcessesDeps) {
    this.#deps = deps;
    const extension = deps.importedFrom.endsWith('.ts') ? '.ts' : '.js';
    this.#program = new URL(deps.program + extension, deps.importedFrom);
  }

  /**
   * Performs a task.
   * @param urgency `urgent` when a request waits for the task
   * @throws TaskFailure
   */
  run(task: T, urgency: 'urgent' | 'background'): Promise<R> {
    if (this.#isStopped) return Promise.reject(new TaskFailure('stopped'));
    const queue = urgency === 'urgent' ? this.#urgent : this.#background;
    if (queue.length >= this.#deps.limits.waiting[urgency]) return Promise.reject(new TaskFailure('busy'));
    return new Promise((resolve, reject) => {
      queue.push({ task, since: this.#deps.clock.monotonic(), resolve, reject });
      this.#startNext();
    });
  }

  /** Kills all processes and rejects all tasks. */
  stop(): void {
    this.#isStopped = true;
    this.#growing?.cancel();
    for (const { reject } of [...this.#urgent.splice(0), ...this.#background.splice(0)]) {
      reject(new TaskFailure('stopped'));
    }
    for (const timer of this.#spare.values()) timer.cancel();
    for (const process of [...this.#busy, ...this.#spare.keys()]) process.kill();
    this.#spare.clear();
  }

  /** @param mayGrow whether a process may be started beside the busy ones */
  #startNext(mayGrow = this.#deps.limits.growAfter === 0): void {
    const { processes } = this.#deps.limits;
    while (this.#busy.size < processes) {
      if (this.#busy.size > 0 && this.#spare.size === 0 && !mayGrow) {
        this.#growLater();
        return;
      }
      const urgent = this.#urgent.shift();
      const mayRunBackground = this.#backgroundBusy < Math.max(1, processes - 1);
      const waiting = urgent ?? (mayRunBackground ? this.#background.shift() : undefined);
      if (waiting === undefined) return;
      void this.#perform(waiting, urgent === undefined);
    }
  }

  /** Starts a further process when a task has waited for `growAfter`. */
  #growLater(): void {
    const { clock, limits } = this.#deps;
    const since = Math.min(this.#urgent[0]?.since ?? Infinity, this.#background[0]?.since ?? Infinity);
    if (since === Infinity) return;
    const rest = since + limits.growAfter - clock.monotonic();
    this.#growing ??= clock.setTimer(rest, () => {
      this.#growing = undefined;
      // The task for which the timer was set may have begun meanwhile.
      const isOverdue = [this.#urgent[0], this.#background[0]].some(
        (first) => first !== undefined && clock.monotonic() >= first.since + limits.growAfter,
      );
      this.#startNext(isOverdue);
    });
  }

  async #perform({ task, resolve, reject }: Waiting<T, R>, isBackground: boolean): Promise<void> {
    let process: TaskProcess<T, R>;
    try {
      process = this.#take();
    } catch (error) {
      // The machine or its operator does not allow new processes.
      return reject(new TaskFailure('unavailable', String(error)));
    }
    this.#busy.add(process);
    if (isBackground) this.#backgroundBusy++;
    try {
      resolve(await process.perform(task, this.#deps.limits.taskTimeout));
    } catch (error) {
      reject(error);
    } finally {
      this.#busy.delete(process);
      if (isBackground) this.#backgroundBusy--;
      this.#keepSpare(process);
      this.#startNext();
    }
  }

  #take(): TaskProcess<T, R> {
    for (const [process, timer] of this.#spare) {
      timer.cancel();
      this.#spare.delete(process);
      if (!process.hasEnded) return process;
    }
    return new TaskProcess(this.#program, this.#deps.environment, this.#deps.clock);
  }

  #keepSpare(process: TaskProcess<T, R>): void {
    if (this.#isStopped) process.kill();
    if (process.hasEnded) return;
    const { clock, limits } = this.#deps;
    const timer = clock.setTimer(limits.idleTimeout, () => {
      this.#spare.delete(process);
      process.kill();
    });
    this.#spare.set(process, timer);
  }
}
