/** Called when `current` has reached the position. */
export type Deliver = (position: number) => void;

/** A position that is reserved but not yet visible. */
export interface PositionReservation {
  readonly position: number;
  /** Calls `deliver` once all lower positions have settled and the limit allows this position. */
  complete(deliver: Deliver): void;
  /** Leaves the position unused. */
  abandon(): void;
}

/** A position that is neither completed nor abandoned. */
export interface PendingPosition {
  readonly position: number;
  /** What the position was reserved for, as given to `PositionCounter.reserve`. */
  readonly purpose: string;
  /** Milliseconds of the monotonic clock. */
  readonly reservedAt: number;
}

/** Slots up to `current` are freed when they are more than this and more than those above, or when none is above. */
const maxSettled = 1_024;

/** A two-phase counter: assigns positions and moves `current` over settled positions, in order, up to a limit. */
export class PositionCounter {
  #current: number;
  /** Slots of the positions above `current`, the lowest at `#head`; the slots before it are passed, but not freed. */
  #slots: Slot[] = [];
  #head = 0;
  #isAdvancing = false;
  #limit: number;
  readonly #onAdvance: (current: number) => void;

  /**
   * @param last the last position that may have been used before
   * @param limit the position that `current` must not pass until `raiseLimit` is called
   */
  constructor(last: number, limit: number, onAdvance: (current: number) => void) {
    this.#current = last;
    this.#limit = limit;
    this.#onAdvance = onAdvance;
  }

  get current(): number {
    return this.#current;
  }

  /** Returns the position that the next call of `reserve` will assign. */
  get next(): number {
    return this.#current + (this.#slots.length - this.#head) + 1;
  }

  /**
   * @param purpose the purpose of the position, for the log if it stays pending
   * @param now milliseconds of the monotonic clock
   */
  reserve(purpose: string, now: number): PositionReservation {
    const slot = new Slot(this.next, purpose, now, this.#advance);
    this.#slots.push(slot);
    return slot;
  }

  /** The lowest position above `current`: it is pending, or settled and above the limit. */
  get oldestPending(): PendingPosition | undefined {
    return this.#slots[this.#head];
  }

  /** Returns the pending positions above `position`, lowest first. */
  pendingAbove(position: number): PendingPosition[] {
    const first = this.#head + Math.max(0, position - this.#current);
    return this.#slots.slice(first).filter(({ isSettled }) => !isSettled);
  }

  /** Lets `current` move up to `limit`. */
  raiseLimit(limit: number): void {
    this.#limit = limit;
    this.#advance();
  }

  readonly #advance = (): void => {
    if (this.#isAdvancing) return;
    const before = this.#current;
    this.#isAdvancing = true;
    try {
      for (
        let slot = this.#slots[this.#head];
        slot?.isSettled && this.#current < this.#limit;
        slot = this.#slots[this.#head]
      ) {
        this.#head++;
        this.#current++;
        slot.deliver?.(this.#current);
      }
    } finally {
      this.#isAdvancing = false;
    }
    this.#compact();
    if (this.#current > before) this.#onAdvance(this.#current);
  };

  /** Frees settled slots, many at a time, so that a long queue is not copied for each of them. */
  #compact(): void {
    if (this.#head > maxSettled && this.#head * 2 > this.#slots.length) {
      this.#slots = this.#slots.slice(this.#head);
      this.#head = 0;
    } else if (this.#head === this.#slots.length) {
      this.#slots.length = 0;
      this.#head = 0;
    }
  }
}

class Slot implements PositionReservation, PendingPosition {
  readonly position: number;
  readonly purpose: string;
  readonly reservedAt: number;
  isSettled = false;
  deliver: Deliver | undefined;
  readonly #settled: () => void;

  constructor(position: number, purpose: string, reservedAt: number, settled: () => void) {
    this.position = position;
    this.purpose = purpose;
    this.reservedAt = reservedAt;
    this.#settled = settled;
  }

  complete(deliver: Deliver): void {
    this.#settle(deliver);
  }

  abandon(): void {
    this.#settle(undefined);
  }

  #settle(deliver: Deliver | undefined): void {
    if (this.isSettled) return;
    this.isSettled = true;
    this.deliver = deliver;
    this.#settled();
  }
}
