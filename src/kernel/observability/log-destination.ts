import { close, write, writeSync } from 'node:fs';

/** Maximum characters that wait for a full disk or a blocked reader; further lines are lost. */
const maxWaiting = 8 * 2 ** 20;
/** Milliseconds until a write to a full pipe is retried. */
const retryDelay = 50;
/** Maximum number of retries of a write to a full pipe when the process ends. */
const maxExitRetries = 20;

/**
 * Writes lines to a file descriptor. Lines that arrive during a write are written together afterwards.
 * Failures never affect the server: an unwritable log is reported once on standard error, and its lines wait
 * until a write succeeds. When too many wait, further lines are lost; once the log can be written, it says how many.
 */
export class LogDestination {
  readonly #fd: number;
  readonly #name: string;
  readonly #maxWaiting: number;
  /** Lines that are not encoded yet. */
  #waiting = '';
  /** Encoded lines, without the bytes that were written. */
  #unwritten: Uint8Array = new Uint8Array();
  /** True from the first write, through retry delays, until no line waits or a write fails. */
  #isBusy = false;
  /** Whether the operating system is writing; it finishes the write even if the process ends. */
  #isWriting = false;
  /** Whether the last write failed. Of several failed writes in a row, only the first is reported. */
  #isFailing = false;
  #isEnding = false;
  #closesFile = false;
  /** Number of lost lines that the log does not mention yet. */
  #lost = 0;
  readonly #atExit = () => this.#writeAtExit();

  constructor(fd: number, name: string, max = maxWaiting) {
    this.#fd = fd;
    this.#name = name;
    this.#maxWaiting = max;
    process.on('exit', this.#atExit);
  }

  /** Queues a line, which ends in a line break. A line that does not fit into the queue is lost and counted. */
  write(line: string): void {
    if (this.#waiting.length + line.length > this.#maxWaiting) this.#lost += 1;
    else this.#waiting += line;
    if (!this.#isBusy) this.#writeNext();
  }

  /**
   * Writes the waiting lines. `write` must not be called afterwards.
   * @param closing whether to close the file after the last write
   */
  end(closing: boolean): void {
    this.#isEnding = true;
    this.#closesFile = closing;
    if (!this.#isBusy) this.#writeNext();
  }

  #writeNext(): void {
    if (this.#unwritten.length === 0) this.#encodeWaiting();
    if (this.#unwritten.length === 0) this.#becomeIdle();
    else {
      this.#isBusy = true;
      this.#isWriting = true;
      write(this.#fd, this.#unwritten, (error, written) => this.#onWritten(error, written));
    }
  }

  #onWritten(error: NodeJS.ErrnoException | null, written: number): void {
    this.#isWriting = false;
    if (error?.code === 'EAGAIN') setTimeout(() => this.#writeNext(), retryDelay).unref();
    else if (error) this.#fail(error);
    else {
      this.#isFailing = false;
      this.#unwritten = this.#unwritten.subarray(written);
      this.#writeNext();
    }
  }

  #encodeWaiting(): void {
    let text = this.#waiting;
    this.#waiting = '';
    if (this.#lost > 0) {
      const msg = 'Log lines were lost because they could not be written';
      text += `${JSON.stringify({ level: 'warn', lost: this.#lost, msg })}\n`;
      this.#lost = 0;
    }
    this.#unwritten = Buffer.from(text);
  }

  #fail(error: NodeJS.ErrnoException): void {
    // EPIPE means that the reader closed the pipe deliberately. Errors of stderr (2) cannot be reported there.
    if (!this.#isFailing && error.code !== 'EPIPE' && this.#fd !== 2) {
      reportOnStderr(`hearth: cannot write the log ${this.#name}: ${error.message}\n`);
    }
    this.#isFailing = true;
    this.#becomeIdle();
  }

  #becomeIdle(): void {
    this.#isBusy = false;
    if (!this.#isEnding) return;
    process.off('exit', this.#atExit);
    if (this.#closesFile) close(this.#fd, () => {});
  }

  #writeAtExit(): void {
    try {
      if (!this.#isWriting) writeAll(this.#fd, this.#unwritten);
      this.#encodeWaiting();
      writeAll(this.#fd, this.#unwritten);
    } catch {
      // The process ends regardless.
    }
  }
}

/** Writes all bytes synchronously. @throws Error when a write fails, or a pipe stays full */
function writeAll(fd: number, bytes: Uint8Array): void {
  let unwritten = bytes;
  for (let tries = 0; unwritten.length > 0; ) {
    try {
      unwritten = unwritten.subarray(writeSync(fd, unwritten));
    } catch (error) {
      tries += 1;
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || tries > maxExitRetries) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryDelay);
    }
  }
}

/** Reports on standard error, which may be closed as well. */
function reportOnStderr(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // No output is left for a report.
  }
}
