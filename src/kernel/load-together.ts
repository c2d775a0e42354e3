/** The keys that are loaded with one call, and its result. */
interface Load<K, V> {
  readonly keys: Set<K>;
  readonly result: Promise<ReadonlyMap<K, V>>;
}

/** Maximum number of keys of one call, so that a query has no more parameters than a database accepts. */
const maxKeys = 500;

/**
 * Collects the keys that callers request in the same turn of the event loop and loads them with one call, for instance
 * for the rooms of a first sync, which are rendered side by side.
 */
export class LoadTogether<K, V> {
  readonly #load: (keys: readonly K[]) => Promise<ReadonlyMap<K, V>>;
  #next: Load<K, V> | undefined;

  /** @param load returns the values by key; keys without a value may be absent */
  constructor(load: (keys: readonly K[]) => Promise<ReadonlyMap<K, V>>) {
    this.#load = load;
  }

  /**
   * Returns the value of a key; `undefined` when there is none.
   * @throws what the load throws, to all callers that wait for it
   */
  async get(key: K): Promise<V | undefined> {
    return (await this.getMany([key])).get(key);
  }

  /**
   * Returns the values of some keys, and also values that other callers have requested.
   * @param wanted at most 500 keys
   * @throws what the load throws, to all callers that wait for it
   */
  getMany(wanted: readonly K[]): Promise<ReadonlyMap<K, V>> {
    if (!this.#next || this.#next.keys.size + wanted.length > maxKeys) this.#next = this.#begin();
    const { keys, result } = this.#next;
    for (const key of wanted) keys.add(key);
    return result;
  }

  #begin(): Load<K, V> {
    const keys = new Set<K>();
    // `process.nextTick` inside a promise reaction runs after all queued reactions, which request further keys.
    const collected = new Promise<void>((resolve) => process.nextTick(resolve));
    const result = collected.then(() => {
      if (this.#next?.keys === keys) this.#next = undefined;
      return this.#load([...keys]);
    });
    return { keys, result };
  }
}
