import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';
import { CommandFailure } from './failure.ts';

/**
 * Prompts at the terminal, or reads the answers from a pipe, one line for each question. One reader serves all
 * questions, because a reader may read further lines ahead, and a second reader would miss these lines.
 */
export class TerminalPrompt {
  readonly #advice: string;
  #lines: Interface | undefined;
  #hidden = false;
  readonly #receivedLines: string[] = [];
  #ended = false;
  #wake: () => void = () => {};

  /** @param advice what the user can do when standard input contains no answer */
  constructor(advice: string) {
    this.#advice = advice;
  }

  /** Reads a line. @throws CommandFailure if the input has ended or the prompt is cancelled */
  async ask(question: string): Promise<string> {
    return (await this.#nextLine(question)).trim();
  }

  /** Reads a line that is not shown while it is typed. @throws CommandFailure as `ask` does */
  async askHidden(question: string): Promise<string> {
    this.#hidden = true;
    try {
      return await this.#nextLine(question);
    } finally {
      this.#hidden = false;
      if (process.stdin.isTTY) process.stderr.write('\n');
    }
  }

  close(): void {
    this.#lines?.close();
  }

  async #nextLine(question: string): Promise<string> {
    this.#lines ??= this.#open();
    if (process.stdin.isTTY) this.#show(this.#lines, question);
    while (this.#receivedLines.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const line = this.#receivedLines.shift();
    if (line !== undefined) return line;
    const reason = process.stdin.isTTY ? 'cancelled' : `no answer on standard input: ${this.#advice}`;
    throw new CommandFailure(reason);
  }

  #show(lines: Interface, question: string): void {
    lines.setPrompt(question);
    if (this.#hidden) process.stderr.write(question);
    else lines.prompt();
  }

  #open(): Interface {
    const output = new Writable({
      write: (chunk, _encoding, done) => {
        if (!this.#hidden) process.stderr.write(chunk);
        done();
      },
    });
    const lines = createInterface({
      input: process.stdin,
      output,
      terminal: process.stdin.isTTY === true,
      historySize: 0,
    });
    lines.on('line', (line) => {
      this.#receivedLines.push(line);
      this.#wake();
    });
    // The interface also closes after Ctrl-C and Ctrl-D.
    lines.once('close', () => {
      this.#ended = true;
      this.#wake();
    });
    return lines;
  }
}
