import type { Clock, Timer } from '../clock.ts';
import { TaskFailure } from './task-failure.ts';
import { TaskProcess } from './task-process.ts';

export interface TaskLimits {
  /** Processes at the same time. */
  readonly processes: number;
  /** Tasks that may wait, of each kind of urgency. */
  readonly waiting: { readonly urgent: number; readonly patient: number };
  /** Milliseconds that a task may take, the start of a process included. */
  readonly taskTime: number;
  /** Milliseconds after which a process ends that has nothing to do. */
  readonly idleTime: number;
}

export interface TaskProcessesDeps {
  /** The file that the processes run, without `.ts` or `.js`, which is that of the sources that run. */
  readonly program: string;
  readonly importedFrom: string;
  /** Variables for the processes; they have nothing of this one's. */
  readonly environment: Readonly<Record<string, string>>;
  readonly limits: TaskLimits;
  readonly clock: Clock;
}

interface Waiting<T, R> {
  readonly task: T;
  readonly resolve: (result: R) => void;
  readonly reject: (failure: unknown) => void;
}

/**
 * Does tasks in processes that are started when there is something to do, have one task at a time, are killed when it
 * takes too long, and end when there is nothing more. One of them is kept free of tasks that are patient.
 */
export class TaskProcesses<T extends object, R> {
  readonly #deps: TaskProcessesDeps;
  readonly #program: URL;
  readonly #urgent: Waiting<T, R>[] = [];
  readonly #patient: Waiting<T, R>[] = [];
  readonly #busy = new Set<TaskProcess<T, R>>();
  readonly #spare = new Map<TaskProcess<T, R>, Timer>();
  #patientBusy = 0;
  #isStopped = false;

  constructor(deps: TaskProcessesDeps) {
    this.#deps = deps;
    const extension = deps.importedFrom.endsWith('.ts') ? '.ts' : '.js';
    this.#program = new URL(deps.program + extension, deps.importedFrom);
  }

  /**
   * @param urgency whether somebody waits for it
   * @throws TaskFailure
   */
  run(task: T, urgency: 'urgent' | 'patient'): Promise<R> {
    if (this.#isStopped) return Promise.reject(new TaskFailure('stopped'));
    const queue = urgency === 'urgent' ? this.#urgent : this.#patient;
    if (queue.length >= this.#deps.limits.waiting[urgency]) return Promise.reject(new TaskFailure('busy'));
    return new Promise((resolve, reject) => {
      queue.push({ task, resolve, reject });
      this.#next();
    });
  }

  /** Kills all processes; whatever waits fails. */
  stop(): void {
    this.#isStopped = true;
    for (const { reject } of [...this.#urgent.splice(0), ...this.#patient.splice(0)]) {
      reject(new TaskFailure('stopped'));
    }
    for (const timer of this.#spare.values()) timer.cancel();
    for (const process of [...this.#busy, ...this.#spare.keys()]) process.kill();
    this.#spare.clear();
  }

  #next(): void {
    const { processes } = this.#deps.limits;
    while (this.#busy.size < processes) {
      const urgent = this.#urgent.shift();
      const mayBePatient = this.#patientBusy < Math.max(1, processes - 1);
      const waiting = urgent ?? (mayBePatient ? this.#patient.shift() : undefined);
      if (waiting === undefined) return;
      void this.#perform(waiting, urgent === undefined);
    }
  }

  async #perform({ task, resolve, reject }: Waiting<T, R>, isPatient: boolean): Promise<void> {
    let process: TaskProcess<T, R>;
    try {
      process = this.#take();
    } catch (error) {
      // This machine, or who runs the server, does not let it start any.
      return reject(new TaskFailure('unavailable', String(error)));
    }
    this.#busy.add(process);
    if (isPatient) this.#patientBusy++;
    try {
      resolve(await process.perform(task, this.#deps.limits.taskTime));
    } catch (error) {
      reject(error);
    } finally {
      this.#busy.delete(process);
      if (isPatient) this.#patientBusy--;
      this.#keep(process);
      this.#next();
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

  #keep(process: TaskProcess<T, R>): void {
    if (this.#isStopped) process.kill();
    if (process.hasEnded) return;
    const { clock, limits } = this.#deps;
    const timer = clock.setTimer(limits.idleTime, () => {
      this.#spare.delete(process);
      process.kill();
    });
    this.#spare.set(process, timer);
  }
}
