/** One piece of work at a time for each key; the others wait for their turn. */
export class RoomTurns {
  readonly #last = new Map<string, Promise<unknown>>();

  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const own = (async () => {
      await before?.catch(() => undefined);
      return work();
    })();
    this.#last.set(key, own);
    try {
      return await own;
    } finally {
      if (this.#last.get(key) === own) this.#last.delete(key);
    }
  }
}
