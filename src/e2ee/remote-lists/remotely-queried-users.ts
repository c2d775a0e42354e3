/** Maximum number of users; above it, every user counts as queried. */
const maxUsers = 10_000;

/**
 * Users whose keys clients may have received from the user's own server, because the stored list was not current. The
 * list that is fetched later may differ from these keys. Clients were not told of the differences, so they have to
 * query again after the fetch. The set is in memory only; after an overflow every user counts as queried.
 */
export class RemotelyQueriedUsers {
  readonly #users = new Set<string>();
  #hasOverflowed = false;

  add(userIds: Iterable<string>): void {
    for (const userId of userIds) {
      if (this.#hasOverflowed) return;
      this.#users.add(userId);
      if (this.#users.size <= maxUsers) continue;
      this.#users.clear();
      this.#hasOverflowed = true;
    }
  }

  /**
   * Removes a user.
   * @returns whether clients may have received keys that differ from the fetched list
   */
  take(userId: string): boolean {
    return this.#users.delete(userId) || this.#hasOverflowed;
  }
}
