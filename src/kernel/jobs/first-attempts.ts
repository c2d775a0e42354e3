import { type Clock, sleep } from '../clock.ts';

/** Orders for one key that nobody has tried. */
interface Order {
  count: number;
  /** Somebody has waited for it in vain. */
  isSlow: boolean;
  readonly attempted: PromiseWithResolvers<void>;
}

/** Keys of a kind that are remembered; whoever waits for others waits for nothing. */
const maxOrders = 10_000;

/**
 * What this process has ordered and nobody has tried yet, so that whoever has ordered something can wait for it. It is
 * in memory only, for a while, and nothing depends on it but how long somebody waits.
 */
export class FirstAttempts {
  readonly #clock: Clock;
  /** By kind and key. */
  readonly #kinds = new Map<string, Map<string, Order>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes note of an order of this kind that is due and on disk. */
  ordered(kind: string, key: string): void {
    const orders = this.#kinds.get(kind) ?? new Map<string, Order>();
    this.#kinds.set(kind, orders);
    const order = orders.get(key) ?? { count: 0, isSlow: false, attempted: Promise.withResolvers<void>() };
    order.count++;
    order.isSlow = false;
    if (orders.size < maxOrders) orders.set(key, order);
  }

  /** An attempt begins. @returns to be called when it has ended, however it did; what was ordered meanwhile stays */
  begin(kind: string, key: string): () => void {
    const order = this.#kinds.get(kind)?.get(key);
    const covered = order?.count;
    return () => {
      if (order?.count === covered) this.#drop(kind, key, order);
    };
  }

  /** The order is taken back. */
  cancelled(kind: string, key: string): void {
    this.#drop(kind, key, this.#kinds.get(kind)?.get(key));
  }

  /**
   * Resolves when what was ordered until now has been tried.
   * @param key absent: of all keys
   * @param patience milliseconds at most; what takes longer is not waited for again
   */
  async tried(kind: string, key: string | undefined, patience: number): Promise<void> {
    const orders = [...(this.#kinds.get(kind) ?? [])].filter(
      ([name, { isSlow }]) => !isSlow && (key === undefined || name === key),
    );
    if (orders.length === 0) return;
    const waiting = new AbortController();
    const late = sleep(this.#clock, patience, waiting.signal).then(() => {
      if (!waiting.signal.aborted) for (const [, order] of orders) order.isSlow = true;
    });
    await Promise.race([Promise.all(orders.map(([, { attempted: tried }]) => tried.promise)), late]);
    waiting.abort();
  }

  #drop(kind: string, key: string, order: Order | undefined): void {
    const orders = this.#kinds.get(kind);
    if (order && orders?.get(key) === order) orders.delete(key);
    order?.attempted.resolve();
  }
}
