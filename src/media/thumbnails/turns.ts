import { TaskFailure } from '../../kernel/task-processes/index.ts';

/** Lets those who want something of the same thing have it one after the other. */
export class Turns {
  readonly #most: number;
  readonly #lines = new Map<string, { length: number; end: Promise<unknown> }>();

  /** @param most of those who wait or have their turn, for each thing */
  constructor(most: number) {
    this.#most = most;
  }

  /** @throws TaskFailure `busy` when too many wait; what `work` throws */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(key) ?? { length: 0, end: Promise.resolve() };
    if (line.length >= this.#most) throw new TaskFailure('busy');
    const turn = line.end.then(work);
    line.length++;
    line.end = turn.catch(() => undefined);
    this.#lines.set(key, line);
    try {
      return await turn;
    } finally {
      if (--line.length === 0) this.#lines.delete(key);
    }
  }
}
