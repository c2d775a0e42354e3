/** One thing at a time in each room. */
export class RoomQueues {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` when everything that was asked for before in that room has ended, well or not. */
  async run<T>(roomId: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(roomId);
    const running = (async () => {
      await before?.catch(() => undefined);
      return work();
    })();
    this.#last.set(roomId, running);
    try {
      return await running;
    } finally {
      if (this.#last.get(roomId) === running) this.#last.delete(roomId);
    }
  }
}
