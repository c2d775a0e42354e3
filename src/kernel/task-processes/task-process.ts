import { type ChildProcess, fork } from 'node:child_process';
import type { Clock, Timer } from '../clock.ts';
import type { Saying } from './perform-tasks.ts';
import { TaskFailure } from './task-failure.ts';

/** What a process is given of this one's environment: nothing secret, and what its libraries can not do without. */
const passedOn = ['LD_LIBRARY_PATH', 'SystemRoot', 'TEMP', 'TMP', 'TMPDIR'];

interface Current<R> {
  readonly resolve: (result: R) => void;
  readonly reject: (failure: TaskFailure) => void;
  readonly timer: Timer;
}

/** One process, with one task at a time. It keeps this process alive only while it has one. */
export class TaskProcess<T extends object, R> {
  readonly #child: ChildProcess;
  readonly #clock: Clock;
  #current: Current<R> | undefined;
  #isReady = false;
  #hasEnded = false;
  #detail = '';

  /** @param environment variables, beside those that libraries need */
  constructor(program: URL, environment: Readonly<Record<string, string>>, clock: Clock) {
    this.#clock = clock;
    const kept = passedOn.flatMap((name) => (process.env[name] === undefined ? [] : [name]));
    this.#child = fork(program, [], {
      execArgv: [],
      env: { ...Object.fromEntries(kept.map((name) => [name, process.env[name]])), ...environment },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    this.#child.unref();
    this.#child.channel?.unref();
    this.#child.on('message', (saying) => this.#hear(saying as Saying<R> | null));
    this.#child.on('exit', (code, signal) => this.#end(signal ?? `status ${code}`));
    this.#child.on('error', (error) => {
      this.#end(String(error));
      this.kill();
    });
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** @throws TaskFailure `crashed`, `too-slow`, `unavailable`, `stopped`: then the process has ended, or is about to */
  perform(task: T, timeLimit: number): Promise<R> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setTimer(timeLimit, () => this.kill(new TaskFailure('too-slow')));
      this.#current = { resolve, reject, timer };
      this.#child.channel?.ref();
      if (this.#hasEnded) return this.#end(this.#detail);
      // Where it can not be sent, the end of the process is about to be told.
      if (this.#child.connected) this.#child.send(task, () => undefined);
    });
  }

  kill(failure = new TaskFailure('stopped')): void {
    this.#hasEnded = true;
    this.#child.kill('SIGKILL');
    this.#settle()?.reject(failure);
  }

  /** It may say anything, when what it works on has got the better of it. */
  #hear(saying: Saying<R> | null): void {
    if (saying?.kind === 'ready') this.#isReady = true;
    else if (saying?.kind === 'broken') this.#detail = String(saying.detail);
    else if (saying?.kind === 'done') this.#settle()?.resolve(saying.result);
    else this.kill(new TaskFailure('crashed', 'it made no sense'));
  }

  #end(how: string): void {
    this.#hasEnded = true;
    const failure = new TaskFailure(this.#isReady ? 'crashed' : 'unavailable', this.#detail || how);
    this.#settle()?.reject(failure);
  }

  #settle(): Current<R> | undefined {
    const current = this.#current;
    this.#current = undefined;
    current?.timer.cancel();
    this.#child.channel?.unref();
    return current;
  }
}
