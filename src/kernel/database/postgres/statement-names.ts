/** A statement is prepared once it has been used this many times. */
const minUses = 5;
/** Maximum prepared statements per connection; they take memory of the server. */
const maxNames = 500;
/** Maximum number of statements whose uses are counted. */
const maxCounted = 2_000;

/** Assigns names to frequent statements. Each connection prepares them once under their name. */
export class StatementNames {
  readonly #names = new Map<string, string>();
  readonly #uses = new Map<string, number>();

  /** Returns the name of `sql`; `undefined` while it is used too rarely, or when other statements have all names. */
  nameFor(sql: string): string | undefined {
    const name = this.#names.get(sql);
    if (name || this.#names.size >= maxNames) return name;
    const uses = (this.#uses.get(sql) ?? 0) + 1;
    if (uses < minUses) {
      if (this.#uses.size >= maxCounted) this.#uses.clear();
      this.#uses.set(sql, uses);
      return undefined;
    }
    this.#uses.delete(sql);
    const next = `hot_${this.#names.size + 1}`;
    this.#names.set(sql, next);
    return next;
  }
}
