import { limitExceeded } from '../../protocol/index.ts';

/**
 * Kinds of routes for which the number of simultaneous requests of one user is limited: routes with responses of several
 * megabytes, and routes that wait for new data before they respond, such as `/sync`.
 */
export type LimitedKind = 'large response' | 'long poll';

/** Maximum number of requests of one user, by kind, that are answered at the same time. */
const maxAtOnce: Readonly<Record<LimitedKind, number>> = { 'large response': 20, 'long poll': 50 };

/** Maximum number of requests of one user and kind that wait for their turn. */
const maxWaiting = 1_000;

/** Milliseconds after which a client may repeat a request that was refused because too many wait. */
const retryAfter = 5_000;

interface Slots {
  running: number;
  /** Called in the order in which they were added. */
  readonly waiting: Set<() => void>;
}

/**
 * Bounds the requests of one user that are answered at the same time, by kind. Others wait for their turn. Otherwise a
 * client that sends hundreds of requests, and does not read the responses, would fill the memory.
 */
export class UserSlots {
  /** By kind, then by user id. */
  readonly #slots: Readonly<Record<LimitedKind, Map<string, Slots>>> = {
    'large response': new Map(),
    'long poll': new Map(),
  };

  /**
   * Takes a slot.
   * @returns a function that frees the slot, to be called once; a promise of it when the request has to wait
   * @throws MatrixError M_LIMIT_EXCEEDED when too many requests wait
   */
  take(userId: string, kind: LimitedKind): (() => void) | Promise<() => void> {
    const ofKind = this.#slots[kind];
    let slots = ofKind.get(userId);
    if (slots === undefined) {
      slots = { running: 0, waiting: new Set() };
      ofKind.set(userId, slots);
    }
    const free = () => this.#free(ofKind, userId, slots);
    if (slots.running < maxAtOnce[kind]) {
      slots.running++;
      return free;
    }
    if (slots.waiting.size >= maxWaiting) throw limitExceeded(retryAfter);
    return new Promise((resolve) => slots.waiting.add(() => resolve(free)));
  }

  #free(ofKind: Map<string, Slots>, userId: string, slots: Slots): void {
    const [next] = slots.waiting;
    if (next !== undefined) {
      slots.waiting.delete(next);
      next();
      return;
    }
    slots.running--;
    if (slots.running === 0) ofKind.delete(userId);
  }
}
