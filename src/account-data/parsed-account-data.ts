import { type Cache, type CacheRegistry, MiB, sizeOfJson } from '../kernel/caches/index.ts';
import { LoadOnce } from '../kernel/load-once.ts';
import type { JsonObject } from '../protocol/index.ts';
import type { AccountData } from './account-data.ts';

/** Maximum number of users whose content is cached. */
const maxCachedUsers = 40_000;

interface Parsed<T> {
  readonly value: T;
  /** Stream position of the last change; 0 if it was never set. */
  readonly position: number;
  /** Estimated bytes. */
  readonly bytes: number;
}

/** Caches the parsed content of one type of global account data, by user. */
export class ParsedAccountData<T> {
  readonly #accountData: AccountData;
  readonly #type: string;
  readonly #parse: (content: JsonObject) => T;
  readonly #values: Cache<string, Parsed<T>>;
  readonly #loading = new LoadOnce<string, Parsed<T>>();

  /**
   * @param parse must accept any content; receives an empty object when there is none
   * @param maxBytes of the cache
   */
  constructor(
    accountData: AccountData,
    caches: CacheRegistry,
    type: string,
    parse: (content: JsonObject) => T,
    maxBytes = 2 * MiB,
  ) {
    this.#accountData = accountData;
    this.#type = type;
    this.#parse = parse;
    this.#values = caches.create<string, Parsed<T>>(`account_data ${type}`, {
      size: maxCachedUsers,
      maxBytes,
      sizeOf: ({ bytes }) => bytes,
    });
    accountData.accountDataStream.subscribe((fact) => {
      if (fact.type !== type || fact.roomId !== undefined) return;
      this.#values.delete(fact.userId);
      // A running load may have read the content from before this change.
      this.#loading.forget(fact.userId);
    });
  }

  /** Returns the parsed content of a user, at once when it is in memory. */
  of(userId: string): T | Promise<T> {
    const known = this.#values.get(userId);
    return known ? known.value : this.#read(userId).then(({ value }) => value);
  }

  /** Returns the stream position of the last change, 0 if there was none; at once when it is in memory. */
  changedAt(userId: string): number | Promise<number> {
    const known = this.#values.get(userId);
    return known ? known.position : this.#read(userId).then(({ position }) => position);
  }

  #read(userId: string): Promise<Parsed<T>> {
    const keep = (parsed: Parsed<T>) => this.#values.set(userId, parsed);
    return this.#loading.run(userId, () => this.#load(userId), keep);
  }

  async #load(userId: string): Promise<Parsed<T>> {
    const key = { userId, roomId: undefined, type: this.#type };
    const { content = {}, position } = await this.#accountData.findWithPosition(key);
    return { value: this.#parse(content), position, bytes: sizeOfJson(content) };
  }
}
