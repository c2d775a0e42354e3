import type { Randomness } from '../../src/kernel/randomness.ts';

/** Seeded randomness: the same seed generates the same sequence. */
export class Dice implements Randomness {
  #state: number;

  constructor(seed: number | string) {
    // FNV-1a, so that adjacent seeds generate unrelated sequences.
    let hash = 0x811c9dc5;
    for (const byte of Buffer.from(String(seed))) hash = Math.imul(hash ^ byte, 0x01000193);
    this.#state = hash;
    for (let round = 0; round < 4; round++) this.next();
  }

  /** Returns another source, which depends on the state of this source and on the name. */
  fork(name: string): Dice {
    return new Dice(`${this.#state}/${name}`);
  }

  /** A number in [0, 1): mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns an integer from `min` to `max`, both included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.int(0, values.length - 1)]!;
  }

  /** Returns one of the names, each as often as its weight says. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries<number>(weights) as [Name, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    return entries.at(-1)![0];
  }

  /** Returns a number up to `max`; small ones are frequent, large ones rare. */
  skewed(max: number): number {
    return this.next() ** 3 * max;
  }

  shuffled<T>(values: readonly T[]): T[] {
    const left = [...values];
    const shuffled: T[] = [];
    while (left.length > 0) shuffled.push(...left.splice(this.int(0, left.length - 1), 1));
    return shuffled;
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.int(0, 255));
  }
}
