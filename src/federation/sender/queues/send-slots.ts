/** A bounded number of slots, given to waiters in the order of their requests. */
export class SendSlots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a free slot and takes it. */
  async take(): Promise<HeldSlot> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return new HeldSlot(this);
  }

  /** Used by `HeldSlot` only. */
  returnSlot(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free++;
  }
}

/** A slot that is taken. */
export class HeldSlot {
  #slots: SendSlots | undefined;

  constructor(slots: SendSlots) {
    this.#slots = slots;
  }

  /** Releases the slot, waits for `pause`, and then takes a slot of `slots`, which may be other slots than before. */
  async releaseDuring(pause: () => Promise<void>, slots: SendSlots): Promise<void> {
    this.release();
    await pause();
    const slot = await slots.take();
    this.#slots = slot.#slots;
  }

  /** Passes the slot to the next waiter; does nothing when it was released before. */
  release(): void {
    this.#slots?.returnSlot();
    this.#slots = undefined;
  }
}
