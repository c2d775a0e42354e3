import { close, write, writeSync } from 'node:fs';

/** Characters that may wait for a disk that is full or a reader who does not read; lines beyond that are lost. */
const maxWaiting = 8 * 2 ** 20;
/** Milliseconds until a full pipe is tried again. */
const pause = 50;
/** How often a full pipe is tried again when the process ends. */
const lastTries = 20;

/**
 * Writes lines to a file descriptor. Lines that come while others are being written are written together. Whatever
 * becomes of them does not disturb the server: that a log can not be written is said once on standard error, and its
 * lines wait for the next one that can. They are lost when they become too many, and the log then says how many.
 */
export class LogDestination {
  readonly #fd: number;
  readonly #name: string;
  readonly #most: number;
  #waiting = '';
  #unwritten: Uint8Array = new Uint8Array();
  /** From the first write until nothing waits, pauses included. */
  #busy = false;
  /** The system has a write, and finishes it although the process ends. */
  #underWay = false;
  #failing = false;
  #ending = false;
  #closing = false;
  #lost = 0;
  readonly #atExit = () => this.#writeAtExit();

  constructor(fd: number, name: string, most = maxWaiting) {
    this.#fd = fd;
    this.#name = name;
    this.#most = most;
    process.on('exit', this.#atExit);
  }

  write(line: string): void {
    if (this.#waiting.length + line.length > this.#most) this.#lost += 1;
    else this.#waiting += line;
    if (!this.#busy) this.#next();
  }

  /** Writes what waits; nothing may come after that. @param closing whether the file is closed then */
  end(closing: boolean): void {
    this.#ending = true;
    this.#closing = closing;
    if (!this.#busy) this.#next();
  }

  #next(): void {
    if (this.#unwritten.length === 0) this.#take();
    if (this.#unwritten.length === 0) this.#rest();
    else {
      this.#busy = true;
      this.#underWay = true;
      write(this.#fd, this.#unwritten, (error, written) => this.#wrote(error, written));
    }
  }

  #wrote(error: NodeJS.ErrnoException | null, written: number): void {
    this.#underWay = false;
    if (error?.code === 'EAGAIN') setTimeout(() => this.#next(), pause).unref();
    else if (error) this.#fail(error);
    else {
      this.#failing = false;
      this.#unwritten = this.#unwritten.subarray(written);
      this.#next();
    }
  }

  #take(): void {
    let text = this.#waiting;
    this.#waiting = '';
    if (this.#lost > 0) {
      const msg = 'Lines of this log are lost: they could not be written';
      text += `${JSON.stringify({ level: 'warn', lost: this.#lost, msg })}\n`;
      this.#lost = 0;
    }
    this.#unwritten = Buffer.from(text);
  }

  #fail(error: NodeJS.ErrnoException): void {
    // Who has closed a pipe wants no more; of everything else an operator hears.
    if (!this.#failing && error.code !== 'EPIPE' && this.#fd !== 2) {
      complain(`hearth: the log ${this.#name} can not be written: ${error.message}\n`);
    }
    this.#failing = true;
    this.#rest();
  }

  #rest(): void {
    this.#busy = false;
    if (!this.#ending) return;
    process.off('exit', this.#atExit);
    if (this.#closing) close(this.#fd, () => {});
  }

  #writeAtExit(): void {
    try {
      if (!this.#underWay) writeAll(this.#fd, this.#unwritten);
      this.#take();
      writeAll(this.#fd, this.#unwritten);
    } catch {
      // The process ends all the same.
    }
  }
}

/** @throws Error when it can not be written, also when a pipe stays full */
function writeAll(fd: number, bytes: Uint8Array): void {
  let rest = bytes;
  for (let tries = 0; rest.length > 0; ) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      tries += 1;
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || tries > lastTries) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause);
    }
  }
}

/** Says it on standard error, which may be gone as well. */
function complain(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // There is nobody to tell.
  }
}
