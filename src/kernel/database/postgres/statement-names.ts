/** How often a statement is seen before it is worth preparing. */
const worthPreparing = 5;
/** Statements that are prepared on each connection at most: the server's memory. */
const nameLimit = 500;
/** Statements whose uses are counted. */
const countLimit = 2_000;

/** Gives names to hot statements, under which each connection prepares them once. */
export class StatementNames {
  readonly #names = new Map<string, string>();
  readonly #uses = new Map<string, number>();

  /** The name for `sql`, or `undefined` while it is not worth one. Prepared under it already or not. */
  nameFor(sql: string): string | undefined {
    const name = this.#names.get(sql);
    if (name || this.#names.size >= nameLimit) return name;
    const uses = (this.#uses.get(sql) ?? 0) + 1;
    if (uses < worthPreparing) {
      if (this.#uses.size >= countLimit) this.#uses.clear();
      this.#uses.set(sql, uses);
      return undefined;
    }
    this.#uses.delete(sql);
    const next = `hot_${this.#names.size + 1}`;
    this.#names.set(sql, next);
    return next;
  }
}
