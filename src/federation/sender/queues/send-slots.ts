/** A bounded number of places; those who wait get one in the order in which they came. */
export class SendSlots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves when there is a place, which is taken then. */
  async take(): Promise<HeldSlot> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return new HeldSlot(this);
  }

  /** For `HeldSlot` only. */
  returnSlot(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free++;
  }
}

/** A place among those who send. */
export class HeldSlot {
  #slots: SendSlots | undefined;

  constructor(slots: SendSlots) {
    this.#slots = slots;
  }

  /** Does without the place while `pause` takes, and has one of `slots` afterwards. */
  async during(pause: () => Promise<void>, slots: SendSlots): Promise<void> {
    this.release();
    await pause();
    const slot = await slots.take();
    this.#slots = slot.#slots;
  }

  release(): void {
    this.#slots?.returnSlot();
    this.#slots = undefined;
  }
}
