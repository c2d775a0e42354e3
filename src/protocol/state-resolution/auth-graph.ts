import type { StateResolutionSource } from './source.ts';

/**
 * The part of a room's auth graph that is reachable from some events, with event ids interned as small
 * integers. Built in one pass without recursion: each event is looked up once, and memory grows only with the
 * events and their `auth_events`. Events that the source does not know are in the graph, without edges.
 */
export class AuthGraph {
  readonly #ids: string[] = [];
  readonly #numbers = new Map<string, number>();
  /** The auth events of event `n`: `#edges` from `#firstEdge[n]` up to `#firstEdge[n + 1]`. */
  readonly #edges: number[] = [];
  readonly #firstEdge: number[] = [0];

  constructor(roots: Iterable<string>, source: StateResolutionSource) {
    for (const id of roots) this.#intern(id);
    // The list grows during the loop until it holds every reachable event.
    for (let number = 0; number < this.#ids.length; number++) {
      const authEventIds = source.event(this.#ids[number]!)?.authEventIds ?? [];
      for (const id of authEventIds) this.#edges.push(this.#intern(id));
      this.#firstEdge.push(this.#edges.length);
    }
  }

  /** Number of events in the graph. */
  get size(): number {
    return this.#ids.length;
  }

  /** Returns the event id of a number below `size`. */
  idOf(number: number): string {
    return this.#ids[number]!;
  }

  /** Returns the number of an event that is in the graph. */
  numberOf(id: string): number {
    return this.#numbers.get(id)!;
  }

  /**
   * Calls `visit` for each auth event of the event `from`. When `visit` returns true, the auth events of the visited
   * event are visited, too. So `visit` must return true only when it sees an event for the first time.
   */
  walk(from: number, visit: (number: number) => boolean): void {
    const pending = [from];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      for (let edge = this.#firstEdge[next]!; edge < this.#firstEdge[next + 1]!; edge++) {
        const authEvent = this.#edges[edge]!;
        if (visit(authEvent)) pending.push(authEvent);
      }
    }
  }

  /**
   * Finds the targets and the events whose auth chains contain a target.
   * @returns an array that has 1 at the number of each found event, and 0 elsewhere
   */
  leadingTo(targets: Iterable<number>): Uint8Array {
    const { first, sources } = this.#reversed();
    const found = new Uint8Array(this.size);
    const pending: number[] = [];
    for (const target of targets) {
      found[target] = 1;
      pending.push(target);
    }
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      for (let edge = first[next]!; edge < first[next + 1]!; edge++) {
        const event = sources[edge]!;
        if (found[event] === 1) continue;
        found[event] = 1;
        pending.push(event);
      }
    }
    return found;
  }

  /**
   * Reverses the edges: the events that reference event `n` are `sources` from `first[n]` up to `first[n +
   * 1]`.
   */
  #reversed(): { first: Uint32Array; sources: Uint32Array } {
    const first = new Uint32Array(this.size + 1);
    for (const target of this.#edges) first[target + 1]!++;
    for (let number = 0; number < this.size; number++) first[number + 1]! += first[number]!;
    const sources = new Uint32Array(this.#edges.length);
    const free = first.slice();
    for (let number = 0; number < this.size; number++) {
      for (let edge = this.#firstEdge[number]!; edge < this.#firstEdge[number + 1]!; edge++) {
        sources[free[this.#edges[edge]!]!++] = number;
      }
    }
    return { first, sources };
  }

  #intern(id: string): number {
    let number = this.#numbers.get(id);
    if (number === undefined) {
      number = this.#ids.length;
      this.#ids.push(id);
      this.#numbers.set(id, number);
    }
    return number;
  }
}
