/** Readable log of a simulation: a line for each event, with its time and its server. */
export class Trace {
  readonly lines: string[] = [];
  readonly #elapsed: () => number;
  readonly #print: boolean;

  /** @param print whether lines are also written to the standard output */
  constructor(elapsed: () => number, print: boolean) {
    this.#elapsed = elapsed;
    this.#print = print;
  }

  note(serverName: string, what: string): void {
    const seconds = (this.#elapsed() / 1000).toFixed(3).padStart(10);
    const line = `${seconds}  ${serverName.padEnd(6)} ${what}`;
    this.lines.push(line);
    if (this.#print) process.stdout.write(`${line}\n`);
  }
}
