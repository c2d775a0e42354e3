import { type Clock, systemClock } from '../../kernel/clock.ts';

/** Minimum milliseconds between two lines where the output is not a terminal. */
const lineInterval = 30_000;

/** Minimum milliseconds between two changes of the line on a terminal. */
const redrawInterval = 200;

/** Standard error, or its replacement in tests. */
interface ProgressOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Shows the progress of a command on standard error, with an estimate of the time that is left. */
export class ProgressLine {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #output: ProgressOutput;
  #began: number | undefined;
  #shownAt = 0;

  constructor(clock: Pick<Clock, 'monotonic'> = systemClock, output: ProgressOutput = process.stderr) {
    this.#clock = clock;
    this.#output = output;
  }

  /**
   * Shows the progress, at most once in each interval.
   * @param part names the part that is in progress, for instance a table
   * @param done how much of `total` is done, in the same unit
   */
  show(part: string, done: number, total: number): void {
    const { isTTY } = this.#output;
    const now = this.#clock.monotonic();
    if (this.#began === undefined) this.#began = this.#shownAt = now;
    if (now - this.#shownAt < (isTTY ? redrawInterval : lineInterval)) return;
    this.#shownAt = now;
    const percent = total === 0 ? 100 : Math.floor((done / total) * 100);
    const text = `${percent} %, ${part}${remaining(now - this.#began, done, total)}`;
    this.#output.write(isTTY ? `\r${text}\u001b[K` : `${text}\n`);
  }

  /** Removes the line from a terminal. */
  end(): void {
    if (this.#output.isTTY) this.#output.write('\r\u001b[K');
  }
}

function remaining(elapsed: number, done: number, total: number): string {
  if (elapsed < 2_000 || done === 0) return '';
  const seconds = Math.round((elapsed / done) * ((total - done) / 1_000));
  return seconds < 90 ? `, about ${seconds} s left` : `, about ${Math.round(seconds / 60)} min left`;
}
