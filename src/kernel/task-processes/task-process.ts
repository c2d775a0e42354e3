import { type ChildProcess, fork } from 'node:child_process';
import type { Clock, Timer } from '../clock.ts';
import type { ProcessMessage } from './perform-tasks.ts';
import { TaskFailure } from './task-failure.ts';

/**
 * Environment variables that a task process inherits, because its libraries require them, or because it starts twice as
 * fast with the cache of compiled code. None of them is secret.
 */
const inheritedVariables = ['LD_LIBRARY_PATH', 'NODE_COMPILE_CACHE', 'SystemRoot', 'TEMP', 'TMP', 'TMPDIR'];

/**
 * Bounds of the memory of a process: the size of its young generation in MiB, and the number of memory pools of its
 * threads.
 */
const memoryBounds = { parameters: ['--max-semi-space-size=1'], environment: { MALLOC_ARENA_MAX: '1' } };

/**
 * Milliseconds that the start of a process may take. Processes have a low priority. On a busy machine, a start
 * therefore takes long without a fault of the first task.
 */
const startTimeout = 60_000;

interface CurrentTask<R> {
  readonly resolve: (result: R) => void;
  readonly reject: (failure: TaskFailure) => void;
  /** Milliseconds that the task may take. */
  readonly timeout: number;
  timer: Timer;
}

/** A child process that performs one task at a time. It keeps its parent process alive only during a task. */
export class TaskProcess<T extends object, R> {
  readonly #child: ChildProcess;
  readonly #clock: Clock;
  #current: CurrentTask<R> | undefined;
  #isReady = false;
  #hasEnded = false;
  /** Why the process could not prepare, as it reported; otherwise empty. */
  #detail = '';

  /** @param environment variables in addition to the inherited ones */
  constructor(program: URL, environment: Readonly<Record<string, string>>, clock: Clock) {
    this.#clock = clock;
    const kept = inheritedVariables.flatMap((name) => (process.env[name] === undefined ? [] : [name]));
    this.#child = fork(program, [], {
      execArgv: memoryBounds.parameters,
      env: {
        ...memoryBounds.environment,
        ...Object.fromEntries(kept.map((name) => [name, process.env[name]])),
        ...environment,
      },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    this.#child.unref();
    this.#child.channel?.unref();
    this.#child.on('message', (message) => this.#onMessage(message as ProcessMessage<R> | null));
    this.#child.on('exit', (code, signal) => this.#onEnd(signal ?? `status ${code}`));
    this.#child.on('error', (error) => {
      this.#onEnd(String(error));
      this.kill();
    });
  }

  /** Whether the process has ended or is being killed. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /**
   * Performs a task.
   * @param timeout milliseconds from the time when the process is ready
   * @throws TaskFailure with the reason `crashed`, `too-slow`, `unavailable` or `stopped`: then the process has ended,
   * or is about to
   */
  perform(task: T, timeout: number): Promise<R> {
    return new Promise((resolve, reject) => {
      const timer = this.#isReady ? this.#limitTaskTime(timeout) : this.#limitStartTime();
      this.#current = { resolve, reject, timeout, timer };
      this.#child.channel?.ref();
      if (this.#hasEnded) return this.#onEnd(this.#detail);
      // When the channel is closed, the `exit` event is about to arrive and rejects the task.
      if (this.#child.connected) this.#child.send(task, () => undefined);
    });
  }

  /** Kills the process, and rejects its current task with `failure`. */
  kill(failure = new TaskFailure('stopped')): void {
    this.#hasEnded = true;
    this.#child.kill('SIGKILL');
    this.#settle()?.reject(failure);
  }

  /** Handles a message. It may be anything, if the input of the task took control of the process. */
  #onMessage(message: ProcessMessage<R> | null): void {
    if (message?.kind === 'ready') this.#onReady();
    else if (message?.kind === 'broken') this.#detail = String(message.detail);
    else if (message?.kind === 'done') this.#settle()?.resolve(message.result);
    else this.kill(new TaskFailure('crashed', 'invalid message'));
  }

  #onReady(): void {
    // Another `ready` of a task that took control of the process gives it no further time.
    if (this.#isReady) return;
    this.#isReady = true;
    if (!this.#current) return;
    this.#current.timer.cancel();
    this.#current.timer = this.#limitTaskTime(this.#current.timeout);
  }

  #limitTaskTime(timeout: number): Timer {
    return this.#clock.setTimer(timeout, () => this.kill(new TaskFailure('too-slow')));
  }

  #limitStartTime(): Timer {
    const failure = new TaskFailure('unavailable', 'the process did not start in time');
    return this.#clock.setTimer(startTimeout, () => this.kill(failure));
  }

  #onEnd(how: string): void {
    this.#hasEnded = true;
    const failure = new TaskFailure(this.#isReady ? 'crashed' : 'unavailable', this.#detail || how);
    this.#settle()?.reject(failure);
  }

  #settle(): CurrentTask<R> | undefined {
    const current = this.#current;
    this.#current = undefined;
    current?.timer.cancel();
    this.#child.channel?.unref();
    return current;
  }
}
