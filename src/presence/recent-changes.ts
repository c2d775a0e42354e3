import type { PresenceFact } from './announcements.ts';

/** How many changes are remembered; who comes later than that is told everything anew. */
const capacity = 50_000;

interface Entry {
  readonly position: number;
  readonly fact: PresenceFact;
}

/** The changes of presence that were announced lately. */
export class RecentChanges {
  #entries: Entry[] = [];
  #size = 0;
  /** Changes up to here may be missing. */
  #floor: number;

  /** @param floor the position from which on it is told of all changes */
  constructor(floor: number) {
    this.#floor = floor;
  }

  add(fact: PresenceFact, position: number): void {
    this.#entries.push({ position, fact });
    this.#size += fact.changes.size;
    if (this.#size < capacity * 2) return;
    while (this.#size > capacity) {
      const dropped = this.#entries.shift();
      if (!dropped) return;
      this.#size -= dropped.fact.changes.size;
      this.#floor = dropped.position;
    }
  }

  /** What was announced in `(after, upTo]`, oldest first; `undefined` when it is not all remembered. */
  between(after: number, upTo: number): PresenceFact[] | undefined {
    if (after < this.#floor) return undefined;
    const found: PresenceFact[] = [];
    for (let index = this.#entries.length - 1; index >= 0; index--) {
      const entry = this.#entries[index];
      if (!entry || entry.position <= after) break;
      if (entry.position <= upTo) found.push(entry.fact);
    }
    return found.reverse();
  }
}
