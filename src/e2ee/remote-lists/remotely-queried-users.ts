/** Above this many they are no longer told apart. */
const most = 10_000;

/**
 * Users of whom a client may have got an answer from their own server, because their list is not current here. It may
 * be another one than the list that is fetched then, and updates that this list contains are told to nobody: so
 * clients have to look again when it has come. In memory, and bounded: what it has lost counts as asked for.
 */
export class RemotelyQueriedUsers {
  readonly #users = new Set<string>();
  #hasOverflowed = false;

  add(userIds: Iterable<string>): void {
    for (const userId of userIds) {
      if (this.#hasOverflowed) return;
      this.#users.add(userId);
      if (this.#users.size <= most) continue;
      this.#users.clear();
      this.#hasOverflowed = true;
    }
  }

  /** @returns whether clients may have another answer; from then on they have this one */
  take(userId: string): boolean {
    return this.#users.delete(userId) || this.#hasOverflowed;
  }
}
