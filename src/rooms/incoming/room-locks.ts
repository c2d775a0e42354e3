/** Lets one after the other work on a room. */
export class RoomLocks {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<T>(roomId: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(roomId);
    const mine = (async () => {
      await before?.catch(() => undefined);
      return work();
    })();
    this.#last.set(roomId, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(roomId) === mine) this.#last.delete(roomId);
    }
  }
}
