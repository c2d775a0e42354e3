import type { CommandContext } from '../command-context.ts';
import { printable } from '../printable.ts';

/** Width of the bar in characters. */
const barWidth = 30;

/** Shows the progress of a long command, on terminals only. */
export class Progress {
  readonly #stream: CommandContext['stderr'];
  #isShown = false;

  constructor(stream: CommandContext['stderr']) {
    this.#stream = stream;
  }

  /** Shows the state of the work in place of the previous one. @param total 0 when it is not known: then no bar is drawn */
  show(done: number, total: number, text: string): void {
    if (!this.#stream.isTTY) return;
    const filled = total === 0 ? 0 : Math.floor((Math.min(done, total) / total) * barWidth);
    const bar = total === 0 ? '' : `[${'#'.repeat(filled).padEnd(barWidth, '.')}] `;
    this.#stream.write(`\r${bar}${printable(text)}\u001b[K`);
    this.#isShown = true;
  }

  /** Removes the line; must be called before anything else is written. */
  end(): void {
    if (this.#isShown) this.#stream.write('\r\u001b[K');
    this.#isShown = false;
  }
}
