/** Takes note that `current` has reached a position. */
export type Deliver = (position: number) => void;

/** A position that is taken but not yet visible. */
export interface PositionReservation {
  readonly position: number;
  /** `deliver` is called once all lower positions have settled. */
  complete(deliver: Deliver): void;
  /** The position stays unused. */
  abandon(): void;
}

interface Slot {
  settled: boolean;
  deliver: Deliver | undefined;
}

/** A two-phase counter: hands out positions and moves `current` over those that have settled, in order. */
export class PositionCounter {
  #current: number;
  /** Slots of the positions above `current`, the lowest at `#head`. */
  #slots: Slot[] = [];
  #head = 0;
  #advancing = false;
  readonly #onAdvance: (current: number) => void;

  /** @param last the last position that may have been used before. */
  constructor(last: number, onAdvance: (current: number) => void) {
    this.#current = last;
    this.#onAdvance = onAdvance;
  }

  get current(): number {
    return this.#current;
  }

  reserve(): PositionReservation {
    const slot: Slot = { settled: false, deliver: undefined };
    const position = this.#current + (this.#slots.length - this.#head) + 1;
    this.#slots.push(slot);
    const settle = (deliver: Deliver | undefined) => {
      if (slot.settled) return;
      slot.deliver = deliver;
      slot.settled = true;
      this.#advance();
    };
    return { position, complete: settle, abandon: () => settle(undefined) };
  }

  #advance(): void {
    if (this.#advancing) return;
    const before = this.#current;
    this.#advancing = true;
    for (let slot = this.#slots[this.#head]; slot?.settled; slot = this.#slots[this.#head]) {
      this.#head++;
      this.#current++;
      slot.deliver?.(this.#current);
    }
    this.#advancing = false;
    this.#compact();
    if (this.#current > before) this.#onAdvance(this.#current);
  }

  /** Gives settled slots back; amortised, so that a long queue is not copied for each of them. */
  #compact(): void {
    if (this.#head > 1024 && this.#head * 2 > this.#slots.length) {
      this.#slots = this.#slots.slice(this.#head);
      this.#head = 0;
    } else if (this.#head === this.#slots.length) {
      this.#slots.length = 0;
      this.#head = 0;
    }
  }
}
