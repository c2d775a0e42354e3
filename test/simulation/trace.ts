/** What happened in a simulation, for people to read: when, where, what. */
export class Trace {
  readonly lines: string[] = [];
  readonly #elapsed: () => number;
  readonly #print: boolean;

  /** @param print whether lines appear at once */
  constructor(elapsed: () => number, print: boolean) {
    this.#elapsed = elapsed;
    this.#print = print;
  }

  note(who: string, what: string): void {
    const seconds = (this.#elapsed() / 1000).toFixed(3).padStart(10);
    const line = `${seconds}  ${who.padEnd(6)} ${what}`;
    this.lines.push(line);
    if (this.#print) process.stdout.write(`${line}\n`);
  }
}
