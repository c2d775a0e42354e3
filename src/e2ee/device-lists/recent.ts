/** How many entries are remembered: of minutes on a large server, of weeks on a small one. */
const usualCapacity = 20_000;

/** What happened lately on a stream, in memory. */
export class Recent<T extends { readonly position: number }> {
  readonly #capacity: number;
  readonly #entries: T[] = [];
  /** Entries up to here may have been forgotten, or happened before the log began. */
  #floor: number;

  /** @param floor the position from which on everything is added */
  constructor(floor: number, capacity = usualCapacity) {
    this.#floor = floor;
    this.#capacity = capacity;
  }

  /** @param entry at a position that is not below those of the entries before */
  add(entry: T): void {
    this.#entries.push(entry);
    if (this.#entries.length < this.#capacity * 2) return;
    const dropped = this.#entries.splice(0, this.#capacity);
    this.#floor = dropped.at(-1)?.position ?? this.#floor;
  }

  /** What happened after a position, oldest first; `undefined` when that can not be told any more. */
  since(after: number): readonly T[] | undefined {
    if (after < this.#floor) return undefined;
    let start = this.#entries.length;
    while (start > 0 && this.#entries[start - 1]!.position > after) start--;
    return this.#entries.slice(start);
  }
}
